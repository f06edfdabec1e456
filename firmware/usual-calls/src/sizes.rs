//! A symbol for each type, as large as the type: the memory that a `static` of it takes.

use tollgate_core::{
    AtomicTokenBucket, CompactTokenBucket, CounterClock, KeyedBuckets, OneWord, Quota, Refiller, TokenBucket, Words,
};

macro_rules! sizes {
    ($($name:ident: $type:ty),* $(,)?) => {
        $(#[unsafe(no_mangle)]
        pub static $name: [u8; size_of::<$type>()] = [0; size_of::<$type>()];)*
    };
}

sizes! {
    SIZE_OF_WORDS: Words,
    SIZE_OF_ONE_WORD: OneWord,
    SIZE_OF_QUOTA: Quota,
    SIZE_OF_TOKEN_BUCKET: TokenBucket,
    SIZE_OF_COMPACT_TOKEN_BUCKET: CompactTokenBucket,
    SIZE_OF_ATOMIC_TOKEN_BUCKET: AtomicTokenBucket,
    SIZE_OF_REFILLER: Refiller,
    SIZE_OF_COUNTER_CLOCK: CounterClock,
    SIZE_OF_KEYED_BUCKETS_16: KeyedBuckets<u8, 16>,
}
