use crate::{contention::Contention, exactness::Exactness, speed::Speeds};
pub fn write(
    _out: &std::path::Path,
    speeds: &Speeds,
    exactness: &[Exactness],
    contention: &[Contention],
) -> Result<(), Box<dyn std::error::Error>> {
    for s in &speeds.calls {
        println!("{:40} {:12} {:6.1} {:6.1} {:?}", s.entry.name, s.entry.clock, s.grant, s.refuse, s.look);
    }
    println!("lease {}", speeds.lease);
    for e in exactness {
        println!(
            "{:40} {:12} over {:6.1} hammered {:6.2} polled {:6.2} fast {:6.2} {}",
            e.entry.name,
            e.entry.clock,
            e.over,
            e.hammered,
            e.polled,
            e.fast,
            e.is_exact()
        );
    }
    for c in contention {
        println!("{:40} {:12} {:.1?}", c.name, c.clock, c.rates);
    }
    Ok(())
}
