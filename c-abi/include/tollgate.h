/* tollgate: exact, lock-free token buckets that threads, interrupts and processes share.
 *
 * These functions need no operating system, allocate nothing, and never block or panic. Times are in microseconds, from
 * an origin of yours, and are given to each call. For one limit of all processes of a machine, see tollgate_file.h.
 *
 * Made by cbindgen from c-abi/core/src: change that. */

#ifndef TOLLGATE_H
#define TOLLGATE_H


#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdint.h>
#endif

#if defined(__GNUC__)
#define TOLLGATE_ALIGNED(bytes) __attribute__((aligned(bytes)))
#elif defined(_MSC_VER)
#define TOLLGATE_ALIGNED(bytes) __declspec(align(bytes))
#else
#error "tollgate.h: say how this compiler aligns a struct"
#endif

/* Where the target has no 64-bit atomics (Cortex-M, 32-bit RISC-V), the library needs these two functions of the program: */
#ifdef __cplusplus
extern "C" {
#endif
/* masks interrupts, even if they are masked already, and returns what the other needs to restore what was; */
uint32_t tollgate_enter_critical_section(void);
/* restores what was. */
void tollgate_leave_critical_section(uint32_t state);
#ifdef __cplusplus
}
#endif

/**
 * What is written to `retry_after_us` if the call can never succeed.
 */
#define TOLLGATE_NEVER 18446744073709551615ull

/**
 * What a call says. 1 to 9 are "not now": try again, and it can succeed. All above are "never", until you change something.
 */
enum tollgate_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * It was done.
   */
  TOLLGATE_OK = 0,
  /**
   * Fewer tokens are there than were asked for: wait, then try again.
   */
  TOLLGATE_INSUFFICIENT = 1,
  /**
   * Others changed the bucket at each attempt: try again.
   */
  TOLLGATE_CONTENDED = 2,
  /**
   * Somebody has paused the limit: wait, then try again.
   */
  TOLLGATE_PAUSED = 3,
  /**
   * More was asked for than is ever held: ask for less, or raise the burst.
   */
  TOLLGATE_EXCEEDS_CAPACITY = 10,
  /**
   * The bucket or the quota was not initialised, or was erased: initialise it.
   */
  TOLLGATE_UNINITIALIZED = 11,
  /**
   * The bucket was handed over to another: use that.
   */
  TOLLGATE_MOVED = 12,
  /**
   * A pointer is null, or not aligned: correct the call.
   */
  TOLLGATE_BAD_POINTER = 13,
  /**
   * The burst is 0: give at least 1.
   */
  TOLLGATE_ZERO_CAPACITY = 20,
  /**
   * The rate is 0: give at least 1 token, in a longer period if need be.
   */
  TOLLGATE_ZERO_RATE = 21,
  /**
   * The period is below a microsecond: give fewer tokens in a longer one.
   */
  TOLLGATE_PERIOD_TOO_SHORT = 22,
  /**
   * The period is above 100 years: give more tokens in a shorter one.
   */
  TOLLGATE_PERIOD_TOO_LONG = 23,
  /**
   * The bucket would take more than 292000 years to fill: give a smaller burst or a faster rate.
   */
  TOLLGATE_FILL_TIME_TOO_LONG = 24,
  /**
   * The file may only be read: get permission to write.
   */
  TOLLGATE_READ_ONLY = 40,
  /**
   * The file was truncated, overwritten or erased in use: remove it, create another, and open that.
   */
  TOLLGATE_DAMAGED = 41,
  /**
   * There is no file of this name any more: create another, and open that.
   */
  TOLLGATE_REMOVED = 42,
  /**
   * Another file has this name now: open it.
   */
  TOLLGATE_REPLACED = 43,
  /**
   * There is no such file: create it, or correct the path.
   */
  TOLLGATE_NOT_FOUND = 44,
  /**
   * Something has this name already: open it, or choose another path.
   */
  TOLLGATE_ALREADY_EXISTS = 45,
  /**
   * The operating system refused: `tollgate_last_error` says why.
   */
  TOLLGATE_IO = 46,
  /**
   * The path names something else than a regular file: name the file itself.
   */
  TOLLGATE_NOT_A_FILE = 47,
  /**
   * The file was not made by tollgate, or was damaged since: choose another path, or remove it.
   */
  TOLLGATE_NOT_A_LIMITER = 48,
  /**
   * The file has another version of the format: use one version of tollgate for all its users.
   */
  TOLLGATE_VERSION = 49,
  /**
   * The file's quota is none: it was damaged; remove it.
   */
  TOLLGATE_BAD_QUOTA = 50,
  /**
   * The file has another quota than was asked for: ask for that, change it, or remove the file.
   */
  TOLLGATE_QUOTA_MISMATCH = 51,
  /**
   * The file belongs to another user, who could change the limit: choose another path.
   */
  TOLLGATE_OTHER_OWNER = 52,
  /**
   * Everybody can write to the file: take that permission away, or choose another path.
   */
  TOLLGATE_WORLD_WRITABLE = 53,
  /**
   * The mode lets everybody write to the file, or its owner not: give another.
   */
  TOLLGATE_BAD_MODE = 54,
  /**
   * The file is on another machine: choose a local folder.
   */
  TOLLGATE_REMOTE = 55,
  /**
   * The file was removed or replaced since it was opened: open the path again.
   */
  TOLLGATE_GONE = 56,
  /**
   * Another process is changing the quota, or holds a lock on the file: try again, or end it.
   */
  TOLLGATE_BUSY = 57,
  /**
   * This process's time namespace is not its children's: start a program in it.
   */
  TOLLGATE_TIME_NAMESPACE = 58,
  /**
   * An error that this header does not know: take that of the library's version.
   */
  TOLLGATE_UNKNOWN = 99,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tollgate_status tollgate_status;
#else
typedef int32_t tollgate_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A token bucket, to be shared by threads and interrupts: 16 bytes. Initialise it with `tollgate_bucket_init`; one of
 * zeros, as a `static` is at first, refuses all with `TOLLGATE_UNINITIALIZED`. It needs no clean-up. Don't copy it.
 */
typedef struct TOLLGATE_ALIGNED(16) tollgate_bucket {
  /**
   * Two words, of the kind that this target has.
   */
  uint64_t opaque[2];
} tollgate_bucket;

/**
 * A rate and a burst. Initialise it with `tollgate_quota_init`; it may be copied, and read by any number of threads.
 */
typedef struct tollgate_quota {
  /**
   * The quota, whose padding nobody writes, and the mark in the last word.
   */
  uint64_t opaque[8];
} tollgate_quota;

/**
 * A pool of tokens without a clock, which its owner refills: 16 bytes. Initialise it with `tollgate_pool_init`; one of
 * zeros holds nothing, and never will. It needs no clean-up. Don't copy it.
 */
typedef struct TOLLGATE_ALIGNED(16) tollgate_pool {
  /**
   * Two words, of the kind that this target has.
   */
  uint64_t opaque[2];
} tollgate_pool;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes a full bucket, before anybody uses it. Its time starts at 0.
 *
 * # Safety
 *
 * `bucket` points to storage that nobody else uses meanwhile, `quota` to a `tollgate_quota`.
 */
tollgate_status tollgate_bucket_init(struct tollgate_bucket *bucket, const struct tollgate_quota *quota);

/**
 * Takes `n` tokens at the time `now_us`, or none.
 *
 * `TOLLGATE_INSUFFICIENT`: fewer are there. Then `retry_after_us`, unless it is null, is how long to wait: until then,
 * and not a microsecond before. `TOLLGATE_CONTENDED`: try again at once; it is 0. Any other: it is `TOLLGATE_NEVER`.
 *
 * # Safety
 *
 * `bucket` and `quota` point to what was initialised, and nobody writes to them but through these functions;
 * `retry_after_us` is null, or points to storage of the caller's own.
 */
tollgate_status tollgate_try_acquire(struct tollgate_bucket *bucket,
                                     const struct tollgate_quota *quota,
                                     uint64_t now_us,
                                     uint32_t n,
                                     uint64_t *retry_after_us);

/**
 * Takes up to `n` tokens at the time `now_us`: what there is. Writes how many to `taken`, which may be 0;
 * after an error it is.
 *
 * # Safety
 *
 * As for `tollgate_try_acquire`; `taken` points to storage of the caller's own.
 */
tollgate_status tollgate_acquire_up_to(struct tollgate_bucket *bucket,
                                       const struct tollgate_quota *quota,
                                       uint64_t now_us,
                                       uint32_t n,
                                       uint32_t *taken);

/**
 * Gives `n` tokens back that were taken and not used. The bucket never holds more than its burst.
 *
 * # Safety
 *
 * As for `tollgate_try_acquire`.
 */
tollgate_status tollgate_refund(struct tollgate_bucket *bucket, const struct tollgate_quota *quota, uint32_t n);

/**
 * Fills the bucket at the time `now_us`.
 *
 * # Safety
 *
 * As for `tollgate_try_acquire`.
 */
tollgate_status tollgate_reset(struct tollgate_bucket *bucket, const struct tollgate_quota *quota, uint64_t now_us);

/**
 * Writes the number of tokens that are there at the time `now_us` to `available`, and takes none. After an error, it is 0.
 *
 * # Safety
 *
 * As for `tollgate_try_acquire`; `available` points to storage of the caller's own.
 */
tollgate_status tollgate_available(const struct tollgate_bucket *bucket,
                                   const struct tollgate_quota *quota,
                                   uint64_t now_us,
                                   uint32_t *available);

/**
 * Writes how long to wait from `now_us` until `n` tokens are there, in microseconds, to `retry_after_us`; 0 if they
 * are. `TOLLGATE_EXCEEDS_CAPACITY`: they never are. After this and any other error it is `TOLLGATE_NEVER`.
 *
 * # Safety
 *
 * As for `tollgate_try_acquire`.
 */
tollgate_status tollgate_retry_after(const struct tollgate_bucket *bucket,
                                     const struct tollgate_quota *quota,
                                     uint64_t now_us,
                                     uint32_t n,
                                     uint64_t *retry_after_us);

/**
 * Makes a full pool of `capacity` tokens, before anybody uses it.
 *
 * # Safety
 *
 * `pool` points to storage that nobody else uses meanwhile.
 */
tollgate_status tollgate_pool_init(struct tollgate_pool *pool, uint64_t capacity);

/**
 * Takes `n` tokens, or none: `TOLLGATE_INSUFFICIENT` if there are fewer, `TOLLGATE_EXCEEDS_CAPACITY` if the pool never
 * holds so many.
 *
 * # Safety
 *
 * `pool` points to what was initialised, and nobody writes to it but through these functions.
 */
tollgate_status tollgate_pool_claim(struct tollgate_pool *pool,
                                    uint64_t n);

/**
 * Puts `n` tokens in, as far as there is room; returns how many tokens went in.
 *
 * # Safety
 *
 * As for `tollgate_pool_claim`.
 */
uint64_t tollgate_pool_refill(struct tollgate_pool *pool, uint64_t n);

/**
 * Takes all that is there; returns how many tokens that were.
 *
 * # Safety
 *
 * As for `tollgate_pool_claim`.
 */
uint64_t tollgate_pool_drain(struct tollgate_pool *pool);

/**
 * Returns how many tokens are there.
 *
 * # Safety
 *
 * As for `tollgate_pool_claim`.
 */
uint64_t tollgate_pool_available(const struct tollgate_pool *pool);

/**
 * Sets a quota: as many `tokens` accrue in each `period_ns` nanoseconds, 1 microsecond to 100 years, and at most
 * `burst` are held.
 *
 * `TOLLGATE_ZERO_RATE`, `TOLLGATE_ZERO_CAPACITY`, `TOLLGATE_PERIOD_TOO_SHORT`, `TOLLGATE_PERIOD_TOO_LONG` and
 * `TOLLGATE_FILL_TIME_TOO_LONG` say what can't be; the quota is left as it was.
 *
 * # Safety
 *
 * `quota` points to storage that nobody else uses meanwhile.
 */
tollgate_status tollgate_quota_init(struct tollgate_quota *quota,
                                    uint32_t tokens,
                                    uint64_t period_ns,
                                    uint32_t burst);

/**
 * Reads a quota: `tokens` accrue in each `period_ns` nanoseconds, and at most `burst` are held. Any of the three pointers may
 * be null. After an error, they are 0.
 *
 * # Safety
 *
 * `quota` points to a `tollgate_quota`; the others are null, or point to storage of the caller's own.
 */
tollgate_status tollgate_quota_get(const struct tollgate_quota *quota,
                                   uint32_t *tokens,
                                   uint64_t *period_ns,
                                   uint32_t *burst);

/**
 * Says what a status means, and what to do about it: a text in English that is there for ever.
 */
const char *tollgate_strerror(int32_t status);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TOLLGATE_H */
