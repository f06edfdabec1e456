//! What becomes of an access to a page of a file that has been truncated: not the death of the process.
//!
//! The kernel sends SIGBUS (mmap(2)). The handler here looks whether the address is in a mapping that a limiter has
//! registered; if so, it maps private zeros in place of all of it, and returns. The access is made again, and finds
//! zeros, which are no bucket: the call fails with an error. Any other SIGBUS goes on to the handler that there was
//! before.
//!
//! Everything that the handler does is allowed in one (signal-safety(7)): it walks a list that only grows, of
//! atomics, and makes system calls.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::layout::LENGTH;

/// The addresses of the registered mappings; 0 is free.
#[derive(Debug)]
struct Pages {
    addresses: [AtomicUsize; 64],
    more: OnceLock<Box<Pages>>,
}

static PAGES: Pages = Pages::new();

impl Pages {
    const fn new() -> Self {
        Self { addresses: [const { AtomicUsize::new(0) }; 64], more: OnceLock::new() }
    }

    fn add(&'static self, address: usize) -> &'static AtomicUsize {
        let take = |free: &&AtomicUsize| free.compare_exchange(0, address, AcqRel, Relaxed).is_ok();
        match self.addresses.iter().find(take) {
            Some(taken) => taken,
            None => self.more.get_or_init(|| Box::new(Self::new())).add(address),
        }
    }

    /// Finds the mapping that an address is in.
    fn around(&self, address: usize) -> Option<usize> {
        let starts = self.addresses.iter().map(|start| start.load(Acquire));
        let mut around = starts.filter(|start| *start != 0 && address.wrapping_sub(*start) < LENGTH);
        around.next().or_else(|| self.more.get()?.around(address))
    }
}

/// A mapping that is guarded until this is dropped. Drop it before it is unmapped.
#[derive(Debug)]
pub(super) struct Guard(&'static AtomicUsize);

impl Guard {
    /// Guards the mapping at this address, and installs the handler if it is the first.
    pub(super) fn new(address: usize) -> io::Result<Self> {
        static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
        let outcome = INSTALLED.get_or_init(|| install().map_err(|error| error.raw_os_error().unwrap_or(0)));
        (*outcome).map_err(io::Error::from_raw_os_error)?;
        Ok(Self(PAGES.add(address)))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.store(0, Release);
    }
}

/// What was done about SIGBUS before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

fn install() -> io::Result<()> {
    // SAFETY: all zeros are a valid `sigaction`: it is plain data, whose pointers are integers or options.
    let zeroed = || unsafe { std::mem::zeroed::<libc::sigaction>() };
    let (mut before, mut new) = (zeroed(), zeroed());
    // SAFETY: sigaction(2) asks for pointers that are valid or null: `before` is a local variable.
    check(unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut before) })?;
    // Before the handler is there to read it.
    let _ = BEFORE.set(before);
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_sigbus;
    new.sa_sigaction = handler as *const () as usize;
    new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // SAFETY: as above; and the handler is a function of the type that SA_SIGINFO promises, which lives for ever.
    check(unsafe { libc::sigaction(libc::SIGBUS, &raw const new, std::ptr::null_mut()) })
}

fn check(answer: libc::c_int) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

extern "C" fn on_sigbus(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid pointer to a siginfo_t to a handler with SA_SIGINFO (sigaction(2)).
    let about = unsafe { &*info };
    if about.si_code == libc::BUS_ADRERR {
        // SAFETY: for this code, the kernel has set the address.
        let address = unsafe { about.si_addr() }.addr();
        if patch(address) {
            return;
        }
    }
    pass_on(signal, info, context);
}

/// Puts zeros where the registered mapping is that an address is in.
fn patch(address: usize) -> bool {
    let Some(start) = PAGES.around(address) else { return false };
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED);
    let wanted = std::ptr::without_provenance_mut(start);
    // SAFETY: MAP_FIXED replaces what is mapped there: a limiter's file, which is registered for as long as it is mapped,
    // whole, and accessed as atomics alone, which any content satisfies.
    let mapped = unsafe { libc::mmap(wanted, LENGTH, protection, flags, -1, 0) };
    mapped == wanted
}

/// Does what was done before.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(before) = BEFORE.get() else { return };
    match before.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: sigaction(2) asks for a valid pointer: `before` is a static.
            unsafe { libc::sigaction(signal, &raw const *before, std::ptr::null_mut()) };
            // A fault comes again when this returns; a signal that was sent has to be sent again.
            // SAFETY: raise(3) has no precondition, and is allowed in a handler.
            unsafe { libc::raise(signal) };
        }
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: with SA_SIGINFO, and neither default nor ignored, the integer is a pointer to a function of this
            // type (sigaction(2)).
            let handler = unsafe {
                std::mem::transmute::<usize, extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void)>(
                    handler,
                )
            };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: as above, without SA_SIGINFO.
            let handler = unsafe { std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(handler) };
            handler(signal);
        }
    }
}
