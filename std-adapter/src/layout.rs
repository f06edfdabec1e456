//! What is where in a limiter's file: a page of what the limit is (a header, a line that all share, and slots of which one is in
//! use), and seven of who uses it.
//!
//! ```text
//! offset  bytes
//!      0      8  magic: "TOLLGATE"                        never changes
//!      8      4  byte order mark: 0x01020304
//!     12      4  version of this format
//!     16      4  clock: 1 = CLOCK_BOOTTIME in microseconds
//!     20      4  checksum of the bytes before
//!     24     40  zero
//!     64      8  epoch: how the file's time follows from the clock   (see `clock.rs`)
//!     72      8  the generation to look at first                     (see `generations.rs`)
//!     80      8  paused until this time, in microseconds of the file's time; 0 = not paused
//!     88      8  somebody watches the ring of events until this time    (see `watching.rs`)
//!     96   1952  zero
//!   2048    128  slot 0: a generation, that is a quota and its bucket
//!   2176    128  slot 1
//!     ...
//!   3968    128  slot 15
//!   4096  26112  who is attached, what they have counted, and who steers: the core's HandshakeHeader
//!  30208   2056  the last events: the core's ObservationRing
//!  32264    504  zero
//!
//! slot    bytes
//!      0      8  state word                               the hot words, on lines of their own
//!      8      8  horizon word
//!     16      8  the number of the generation; that of the first is random
//!     24      8  capacity: 1 ..= 2^32 − 1 tokens          as 64-bit words, since they are read as such
//!     32      8  tokens for each period: 1 ..= 2^32 − 1
//!     40      8  period in nanoseconds: 10^3 ..= 3.15576·10^18
//!     48      8  checksum of the three
//!     56     72  zero
//! ```
//!
//! Numbers are in the byte order of the machine, which the mark tells.

use std::time::Duration;

use tollgate_core::{HandshakeHeader, ObservationRing, Quota, QuotaError};

/// The length of the file.
pub(crate) const LENGTH: usize = 8 * PAGE;
/// The length of its first part, which says what the limit is.
pub(crate) const PAGE: usize = 4096;

/// Who uses the limit, behind the first page. It starts as zeros.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Users {
    pub(crate) header: Header,
    pub(crate) ring: Ring,
}

/// How many threads of all processes can have seats of their own.
pub(crate) const SEATS: usize = 100;

/// Who is attached to a limiter, what they have counted, and who steers it. See [`HandshakeHeader`].
pub type Header = HandshakeHeader<SEATS>;
/// The last events of a limiter. See [`ObservationRing`].
pub type Ring = ObservationRing<256>;

const _: () = assert!(size_of::<Header>() == 26_112 && size_of::<Users>() == 28_168);
const _: () = assert!(PAGE + size_of::<Users>() <= LENGTH);

/// Where the epoch is.
pub(crate) const EPOCH: usize = 64;
/// Where the generation to look at first is.
pub(crate) const FIRST: usize = 72;
/// Where the end of a pause is.
pub(crate) const PAUSE: usize = 80;
/// Where the time is until which somebody watches the ring.
pub(crate) const WATCHED: usize = 88;

/// How many slots there are.
const SLOTS: usize = 16;
const FIRST_SLOT: usize = 2048;
const SLOT_LENGTH: usize = 128;

const _: () = assert!(FIRST_SLOT + SLOTS * SLOT_LENGTH == PAGE);

const MAGIC: [u8; 8] = *b"TOLLGATE";
const BYTE_ORDER: u32 = 0x0102_0304;
const VERSION: u32 = 2;
const CLOCK_BOOTTIME: u32 = 1;
/// The bytes that the header's checksum covers; it follows them.
const HEADER: usize = 20;

/// The first page of a limiter's file as read once, or to be written.
pub(crate) type Page = [u8; PAGE];

/// Where the words of a generation are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) state: usize,
    pub(crate) horizon: usize,
    pub(crate) number: usize,
    pub(crate) quota: [usize; 4],
}

/// Makes a number for the first generation of a file, which no other file has: if its content is ever put over that
/// of another, the others' users find that theirs is gone.
pub(crate) fn first_generation() -> u64 {
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
    // Far from the largest, and a multiple of the slots.
    (random >> 8) & !(SLOTS as u64 - 1)
}

/// Finds the slot of a generation: they take turns.
#[inline]
pub(crate) const fn slot(generation: u64) -> Slot {
    #[allow(clippy::cast_possible_truncation, reason = "the lowest bits count")]
    let at = FIRST_SLOT + (generation as usize % SLOTS) * SLOT_LENGTH;
    Slot { state: at, horizon: at + 8, number: at + 16, quota: [at + 24, at + 32, at + 40, at + 48] }
}

/// Returns the words of a quota, for [`Slot::quota`].
pub(crate) fn quota_words(quota: &Quota) -> [u64; 4] {
    let period = u64::try_from(quota.period().as_nanos()).unwrap_or(u64::MAX);
    let words = [quota.capacity().into(), quota.tokens().into(), period];
    let [capacity, tokens, period] = words;
    [capacity, tokens, period, checksum_of_words(words)]
}

/// What is wrong with a file's content.
#[derive(Debug, PartialEq)]
pub(crate) enum Flaw {
    /// It is not a limiter's file, or damaged: what was found.
    Content(String),
    /// It has another version of the format.
    Version(u32),
    /// Its quota is none.
    Quota(QuotaError),
}

/// Reads a quota from its words.
pub(crate) fn read_quota([capacity, tokens, period, sum]: [u64; 4]) -> Result<Quota, Flaw> {
    let expected = checksum_of_words([capacity, tokens, period]);
    if sum != expected {
        return Err(Flaw::Content(format!("the checksum of its quota is {sum:#x}, not {expected:#x}")));
    }
    // A right checksum of what does not fit in its field is no accident; say what the field would hold at most.
    let field = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    Quota::new(field(tokens), Duration::from_nanos(period))
        .and_then(|rate| rate.with_burst(field(capacity)))
        .map_err(Flaw::Quota)
}

/// Makes the content of a new file, whose first generation has this number, a multiple of the slots.
pub(crate) fn page(quota: &Quota, [state, horizon]: [u64; 2], epoch: u64, first: u64) -> Page {
    let mut page = [0; PAGE];
    put(&mut page, 0, MAGIC);
    put(&mut page, 8, BYTE_ORDER.to_ne_bytes());
    put(&mut page, 12, VERSION.to_ne_bytes());
    put(&mut page, 16, CLOCK_BOOTTIME.to_ne_bytes());
    let sum = checksum_of_header(&page);
    put(&mut page, HEADER, sum.to_ne_bytes());
    put(&mut page, EPOCH, epoch.to_ne_bytes());
    put(&mut page, FIRST, first.to_ne_bytes());
    let slot = slot(first);
    put(&mut page, slot.number, first.to_ne_bytes());
    put(&mut page, slot.state, state.to_ne_bytes());
    put(&mut page, slot.horizon, horizon.to_ne_bytes());
    for (at, word) in slot.quota.into_iter().zip(quota_words(quota)) {
        put(&mut page, at, word.to_ne_bytes());
    }
    page
}

/// Checks what never changes in a file.
pub(crate) fn check_header(page: &Page) -> Result<(), Flaw> {
    let content = |found| Err(Flaw::Content(found));
    let magic: [u8; 8] = get(page, 0);
    if magic != MAGIC {
        return content(format!("it starts with \"{}\", not \"{}\"", magic.escape_ascii(), MAGIC.escape_ascii()));
    }
    let order = u32::from_ne_bytes(get(page, 8));
    if order != BYTE_ORDER {
        return content(format!("its byte order mark is {order:#010x}, this machine's is {BYTE_ORDER:#010x}"));
    }
    let version = u32::from_ne_bytes(get(page, 12));
    if version != VERSION {
        return Err(Flaw::Version(version));
    }
    let (sum, expected) = (u32::from_ne_bytes(get(page, HEADER)), checksum_of_header(page));
    if sum != expected {
        return content(format!("the checksum of its header is {sum:#010x}, not {expected:#010x}"));
    }
    let clock = u32::from_ne_bytes(get(page, 16));
    if clock != CLOCK_BOOTTIME {
        return content(format!("its clock is number {clock}, this library's is {CLOCK_BOOTTIME}"));
    }
    Ok(())
}

/// The version of this format.
pub(crate) const fn version() -> u32 {
    VERSION
}

fn checksum_of_header(page: &Page) -> u32 {
    crc32fast::hash(page.get(..HEADER).unwrap_or_default())
}

fn checksum_of_words(words: [u64; 3]) -> u64 {
    let mut hasher = crc32fast::Hasher::new();
    for word in words {
        hasher.update(&word.to_ne_bytes());
    }
    // Not zero for zeros: an erased slot is no quota.
    u64::from(hasher.finalize()) | 1 << 32
}

fn put<const N: usize>(page: &mut Page, at: usize, bytes: [u8; N]) {
    for (to, from) in page.iter_mut().skip(at).zip(bytes) {
        *to = from;
    }
}

fn get<const N: usize>(page: &Page, at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    for (to, from) in bytes.iter_mut().zip(page.iter().skip(at)) {
        *to = *from;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_quota() -> Quota {
        Quota::new(7, Duration::from_nanos(123_456_789)).unwrap().with_burst(9).unwrap()
    }

    fn words(page: &Page) -> [u64; 4] {
        slot(0).quota.map(|at| u64::from_ne_bytes(get(page, at)))
    }

    #[test]
    fn what_is_written_is_read() {
        let page = page(&a_quota(), [1, 2], 3, 32);
        assert_eq!(check_header(&page), Ok(()));
        assert_eq!(read_quota(words(&page)), Ok(a_quota()));
        let word = |at| u64::from_ne_bytes(get(&page, at));
        assert_eq!(
            (word(slot(0).state), word(slot(0).horizon), word(EPOCH), word(FIRST), word(slot(0).number)),
            (1, 2, 3, 32, 32)
        );
    }

    /// Each field of the header, made wrong, is refused in its own words.
    #[test]
    fn each_field_is_checked() {
        let wrong: [(usize, &[u8], &str); 5] = [
            (0, b"\x7fELF", "starts with \"\\x7fELFGATE\""),
            (8, &[9, 9, 9, 9], "byte order"),
            (12, &3_u32.to_ne_bytes(), "Version(3)"),
            (16, &7_u32.to_ne_bytes(), "the checksum of its header"),
            (20, &7_u32.to_ne_bytes(), "the checksum of its header is 0x00000007"),
        ];
        for (at, bytes, text) in wrong {
            let mut page = page(&a_quota(), [1, 2], 3, 32);
            page[at..at + bytes.len()].copy_from_slice(bytes);
            let flaw = format!("{:?}", check_header(&page).unwrap_err());
            assert!(flaw.replace("\\\\", "\\").replace("\\\"", "\"").contains(text), "{flaw}");
        }
        let mut page = page(&a_quota(), [1, 2], 3, 32);
        put(&mut page, 16, 7_u32.to_ne_bytes());
        let sum = checksum_of_header(&page);
        put(&mut page, HEADER, sum.to_ne_bytes());
        assert_eq!(check_header(&page), Err(Flaw::Content("its clock is number 7, this library's is 1".to_owned())));
        assert!(check_header(&[0; PAGE]).is_err());
        assert!(check_header(&[255; PAGE]).is_err());
    }

    #[test]
    fn a_quota_that_is_none_is_refused() {
        let read = |words: [u64; 3]| read_quota([words[0], words[1], words[2], checksum_of_words(words)]);
        assert_eq!(
            read([9, 7, 1_000_000]),
            Quota::new(7, Duration::from_millis(1)).unwrap().with_burst(9).map_err(Flaw::Quota)
        );
        for words in [[0, 7, 1000], [9, 0, 1000], [9, 7, 999], [9, 7, u64::MAX]] {
            assert!(matches!(read(words), Err(Flaw::Quota(_))), "{words:?}");
        }
        for bit in 0..256 {
            let mut words = quota_words(&a_quota());
            words[bit / 64] ^= 1 << (bit % 64);
            assert!(matches!(read_quota(words), Err(Flaw::Content(_))), "bit {bit}");
        }
        assert!(read_quota([0; 4]).is_err());
    }
}
