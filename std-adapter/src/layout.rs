//! What is where in a limiter's file: one page, a header that never changes, and the two words that do.
//!
//! ```text
//! offset  bytes
//!      0      8  magic: "TOLLGATE"
//!      8      4  byte order mark: 0x01020304
//!     12      4  version of this format
//!     16      4  clock: 1 = CLOCK_BOOTTIME in microseconds
//!     20      4  capacity: 1 ..= 2^32 − 1 tokens
//!     24      4  tokens for each period: 1 ..= 2^32 − 1
//!     28      4  zero
//!     32      8  period in nanoseconds: 10^3 ..= 3.15576·10^18
//!     40     16  boot id of the machine
//!     56     72  zero
//!    128      8  state word          the hot words, in a cache line (and its neighbour)
//!    136      8  horizon word        that no one else writes to
//!    144   3952  zero
//! ```
//!
//! Numbers are in the byte order of the machine, which the mark tells.

use std::path::Path;
use std::time::Duration;

use tollgate_core::Quota;

use crate::clock::BootId;
use crate::error::FileError;

/// The length of the file: a page, on every machine that has 64-bit atomics.
pub(crate) const LENGTH: usize = 4096;
/// Where the state word is.
pub(crate) const STATE: usize = 128;
/// Where the horizon word is.
pub(crate) const HORIZON: usize = 136;

const MAGIC: [u8; 8] = *b"TOLLGATE";
const BYTE_ORDER: u32 = 0x0102_0304;
const VERSION: u32 = 1;
const CLOCK_BOOTTIME: u32 = 1;

/// A limiter's file as read once, or to be written.
pub(crate) type Page = [u8; LENGTH];

/// What never changes in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) quota: Quota,
    pub(crate) boot: BootId,
}

impl Header {
    /// Makes the file's content with these words.
    pub(crate) fn page(&self, [state, horizon]: [u64; 2]) -> Page {
        let period = u64::try_from(self.quota.period().as_nanos()).unwrap_or(u64::MAX);
        let mut page = [0; LENGTH];
        put(&mut page, 0, MAGIC);
        put(&mut page, 8, BYTE_ORDER.to_ne_bytes());
        put(&mut page, 12, VERSION.to_ne_bytes());
        put(&mut page, 16, CLOCK_BOOTTIME.to_ne_bytes());
        put(&mut page, 20, self.quota.capacity().to_ne_bytes());
        put(&mut page, 24, self.quota.tokens().to_ne_bytes());
        put(&mut page, 32, period.to_ne_bytes());
        put(&mut page, 40, self.boot.0);
        put(&mut page, STATE, state.to_ne_bytes());
        put(&mut page, HORIZON, horizon.to_ne_bytes());
        page
    }

    /// Checks a file's content, read from `path`.
    pub(crate) fn read(page: &Page, path: &Path) -> Result<Self, FileError> {
        let other = |found: String| FileError::NotALimiter { path: path.to_owned(), found };
        let magic: [u8; 8] = get(page, 0);
        if magic != MAGIC {
            return Err(other(format!("it starts with {:?}, not {:?}", Ascii(&magic), Ascii(&MAGIC))));
        }
        let order = u32::from_ne_bytes(get(page, 8));
        if order != BYTE_ORDER {
            return Err(other(format!("its byte order mark is {order:#010x}, this machine's is {BYTE_ORDER:#010x}")));
        }
        let version = u32::from_ne_bytes(get(page, 12));
        if version != VERSION {
            return Err(FileError::Version { path: path.to_owned(), found: version, expected: VERSION });
        }
        let clock = u32::from_ne_bytes(get(page, 16));
        if clock != CLOCK_BOOTTIME {
            return Err(other(format!("its clock is number {clock}, this library's is {CLOCK_BOOTTIME}")));
        }
        let (capacity, tokens) = (u32::from_ne_bytes(get(page, 20)), u32::from_ne_bytes(get(page, 24)));
        let period = Duration::from_nanos(u64::from_ne_bytes(get(page, 32)));
        let quota = Quota::new(tokens, period)
            .and_then(|rate| rate.with_burst(capacity))
            .map_err(|source| FileError::BadQuota { path: path.to_owned(), source })?;
        Ok(Self { quota, boot: BootId(get(page, 40)) })
    }
}

/// The eight bytes of a magic as text, whatever they are.
struct Ascii<'a>(&'a [u8]);

impl std::fmt::Debug for Ascii<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
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

    fn header() -> Header {
        let quota = Quota::new(7, Duration::from_nanos(123_456_789)).unwrap().with_burst(9).unwrap();
        Header { quota, boot: BootId([5; 16]) }
    }

    fn read(page: &Page) -> Result<Header, String> {
        Header::read(page, Path::new("/f")).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_written_is_read() {
        let page = header().page([1, 2]);
        assert_eq!(read(&page), Ok(header()));
        assert_eq!(u64::from_ne_bytes(get(&page, STATE)), 1);
        assert_eq!(u64::from_ne_bytes(get(&page, HORIZON)), 2);
    }

    /// Each field, made wrong, is refused in its own words.
    #[test]
    fn each_field_is_checked() {
        let wrong: [(usize, &[u8], &str); 8] = [
            (0, b"\x7fELF", "starts with \"\\x7fELFGATE\""),
            (8, &[9, 9, 9, 9], "byte order"),
            (12, &2_u32.to_ne_bytes(), "version 2, this tollgate's is 1"),
            (16, &7_u32.to_ne_bytes(), "clock is number 7"),
            (20, &0_u32.to_ne_bytes(), "burst of 0"),
            (24, &0_u32.to_ne_bytes(), "rate of 0"),
            (32, &999_u64.to_ne_bytes(), "shorter than 1µs: 999ns"),
            (32, &u64::MAX.to_ne_bytes(), "longer than 100 years"),
        ];
        for (at, bytes, text) in wrong {
            let mut page = header().page([1, 2]);
            page[at..at + bytes.len()].copy_from_slice(bytes);
            let error = read(&page).unwrap_err();
            assert!(error.starts_with("/f: ") && error.contains(text), "{error}");
        }
        assert!(read(&[0; LENGTH]).is_err());
        assert!(read(&[255; LENGTH]).is_err());
    }
}
