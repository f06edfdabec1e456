/* tollgate: one limit for all processes of a machine, in a memory-mapped file.
 *
 * There is no server, no daemon and no lock; a process that is killed leaves nothing to clean up. Every call may be made
 * from any thread. The time is the machine's. Opening a file installs a handler of SIGBUS, which makes an error of a file that
 * is truncated in use, and passes any other SIGBUS on to the handler before it: install one of yours first.
 *
 * Made by cbindgen from c-abi/src: change that. */

#ifndef TOLLGATE_FILE_H
#define TOLLGATE_FILE_H


#include <stdbool.h>

#include "tollgate.h"


/**
 * A limit in a file, opened. Any number of threads may use it; close it with `tollgate_file_close`.
 */
typedef struct tollgate_file tollgate_file;

/**
 * What all processes have counted since the limit was made, those included that have ended. Compare two readings to tell how much
 * was counted between; new counts are never added to this structure.
 */
typedef struct tollgate_counts {
  /**
   * Calls that were granted.
   */
  uint64_t granted_calls;
  /**
   * Tokens that were granted.
   */
  uint64_t granted_tokens;
  /**
   * Calls that were refused.
   */
  uint64_t refused_calls;
  /**
   * Attempts that had to be made again, since another was faster.
   */
  uint64_t contended_calls;
  /**
   * Tokens that were given back.
   */
  uint64_t refunded_tokens;
  /**
   * Reports that it went well, what was limited.
   */
  uint64_t reported_ok;
  /**
   * Reports that it met an overload, what was limited.
   */
  uint64_t reported_overload;
  /**
   * How long granted calls waited, in microseconds, all together.
   */
  uint64_t waited_us;
} tollgate_counts;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Takes `n` tokens, or none, and does not wait.
 *
 * `TOLLGATE_INSUFFICIENT`, `TOLLGATE_PAUSED`: then `retry_after_us`, unless it is null, is how long to wait.
 * `TOLLGATE_CONTENDED`: try again at once; it is 0. Any other: it is `TOLLGATE_NEVER`.
 *
 * # Safety
 *
 * `file` was opened and not closed; `retry_after_us` is null, or points to storage of the caller's own.
 */
tollgate_status tollgate_file_try_acquire(const struct tollgate_file *file, uint32_t n, uint64_t *retry_after_us);

/**
 * Takes `n` tokens, and waits for them.
 *
 * # Safety
 *
 * As for `tollgate_file_try_acquire`.
 */
tollgate_status tollgate_file_acquire(const struct tollgate_file *file, uint32_t n);

/**
 * Takes `n` tokens, and waits for them, but for `timeout_us` microseconds at most. If they would not come in that time,
 * it does not wait at all, and says why, as `tollgate_file_try_acquire` does.
 *
 * # Safety
 *
 * As for `tollgate_file_try_acquire`.
 */
tollgate_status tollgate_file_acquire_timeout(const struct tollgate_file *file,
                                              uint32_t n,
                                              uint64_t timeout_us);

/**
 * Takes up to `n` tokens: what there is. Writes how many to `taken`, which may be 0; after an error it
 * is.
 *
 * # Safety
 *
 * As for `tollgate_file_try_acquire`; `taken` points to storage of the caller's own.
 */
tollgate_status tollgate_file_acquire_up_to(const struct tollgate_file *file, uint32_t n, uint32_t *taken);

/**
 * Gives `n` tokens back that were taken and not used. The limit never holds more than its burst.
 *
 * # Safety
 *
 * As for `tollgate_file_try_acquire`.
 */
tollgate_status tollgate_file_refund(const struct tollgate_file *file, uint32_t n);

/**
 * Fills the limit.
 *
 * # Safety
 *
 * As for `tollgate_file_try_acquire`.
 */
tollgate_status tollgate_file_reset(const struct tollgate_file *file);

/**
 * Writes the number of tokens that are there to `available`, and takes none. After an error, it is 0.
 *
 * # Safety
 *
 * As for `tollgate_file_try_acquire`; `available` points to storage of the caller's own.
 */
tollgate_status tollgate_file_available(const struct tollgate_file *file, uint32_t *available);

/**
 * Writes how long to wait until `n` tokens are there, in microseconds, to `retry_after_us`; 0 if they are. After an error,
 * it is `TOLLGATE_NEVER`.
 *
 * # Safety
 *
 * As for `tollgate_file_try_acquire`.
 */
tollgate_status tollgate_file_retry_after(const struct tollgate_file *file,
                                          uint32_t n,
                                          uint64_t *retry_after_us);

/**
 * Copies the quota that is in force to `quota`.
 *
 * # Safety
 *
 * As for `tollgate_file_try_acquire`; `quota` points to storage that nobody else uses meanwhile.
 */
tollgate_status tollgate_file_quota(const struct tollgate_file *file, tollgate_quota *quota);

/**
 * Changes the quota for all who use the file, at once. What is there stays, up to the new burst. After an error,
 * `tollgate_last_error` says more.
 *
 * # Safety
 *
 * As for `tollgate_file_try_acquire`; `quota` points to a `tollgate_quota`.
 */
tollgate_status tollgate_file_set_quota(const struct tollgate_file *file, const tollgate_quota *quota);

/**
 * Makes all who use the file wait for `wait_us` microseconds, as a server that is asked too often wants it. A pause that
 * ends later stays.
 *
 * # Safety
 *
 * As for `tollgate_file_try_acquire`.
 */
tollgate_status tollgate_file_pause(const struct tollgate_file *file,
                                    uint64_t wait_us);

/**
 * Ends a pause.
 *
 * # Safety
 *
 * As for `tollgate_file_try_acquire`.
 */
tollgate_status tollgate_file_resume(const struct tollgate_file *file);

/**
 * Writes what all processes have counted to `counts`. After an error, all of it is 0.
 *
 * # Safety
 *
 * As for `tollgate_file_try_acquire`; `counts` points to storage of the caller's own.
 */
tollgate_status tollgate_file_counts(const struct tollgate_file *file, struct tollgate_counts *counts);

/**
 * Reports how it went, what tokens were taken for: whether it met an overload, as 429, 503 or a timeout. A program that steers
 * the quota by such reports can be any that uses the file. `TOLLGATE_READ_ONLY`: nothing can be reported.
 *
 * # Safety
 *
 * As for `tollgate_file_try_acquire`.
 */
tollgate_status tollgate_file_report(const struct tollgate_file *file,
                                     bool overloaded);

/**
 * Says why this thread's last `tollgate_file_create`, `_open`, `_open_or_create` or `_set_quota` failed: with the path,
 * what was found and what to do; empty if none has. The text is there until the thread's next such call that fails.
 */
const char *tollgate_last_error(void);

/**
 * Creates the file of a limit, full, and opens it. Nothing must have this name yet.
 *
 * `mode` are its permission bits, as of chmod(2): 0600 for this user alone; others must not be able to write.
 * `file` is where the handle is put; after an error it is null, and `tollgate_last_error` says more.
 *
 * # Safety
 *
 * `path` points to a string, `quota` to a `tollgate_quota`, `file` to storage of the caller's own.
 */
tollgate_status tollgate_file_create(const char *path,
                                     const tollgate_quota *quota,
                                     uint32_t mode,
                                     struct tollgate_file **file);

/**
 * Opens the file of a limit, which must exist; its quota is in it.
 *
 * # Safety
 *
 * As for `tollgate_file_create`.
 */
tollgate_status tollgate_file_open(const char *path, struct tollgate_file **file);

/**
 * Opens the file of a limit, or creates it if there is none. One that exists must have this quota.
 *
 * # Safety
 *
 * As for `tollgate_file_create`.
 */
tollgate_status tollgate_file_open_or_create(const char *path,
                                             const tollgate_quota *quota,
                                             uint32_t mode,
                                             struct tollgate_file **file);

/**
 * Closes the file; null is allowed. The limit stays, for others and for the next time.
 *
 * # Safety
 *
 * `file` is null, or was opened and not closed; no thread uses it any more.
 */
void tollgate_file_close(struct tollgate_file *file);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TOLLGATE_FILE_H */
