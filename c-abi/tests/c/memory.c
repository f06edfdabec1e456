/* Buckets and pools in memory: every function of tollgate.h. */
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "check.h"
#include "tollgate.h"

#define SECOND UINT64_C(1000000000)
#define DAY (86400 * SECOND)

_Static_assert(sizeof(tollgate_bucket) == 16, "a bucket is 16 bytes");
_Static_assert(_Alignof(tollgate_bucket) == 16, "and aligned to them");
_Static_assert(sizeof(tollgate_pool) == 16, "a pool is 16 bytes");

static void quotas(void) {
    tollgate_quota quota = {0};
    CHECK(tollgate_quota_init(&quota, 0, SECOND, 1) == TOLLGATE_ZERO_RATE);
    CHECK(tollgate_quota_init(&quota, 1, SECOND, 0) == TOLLGATE_ZERO_CAPACITY);
    CHECK(tollgate_quota_init(&quota, 1, 999, 1) == TOLLGATE_PERIOD_TOO_SHORT);
    CHECK(tollgate_quota_init(&quota, 1, UINT64_MAX, 1) == TOLLGATE_PERIOD_TOO_LONG);
    CHECK(tollgate_quota_init(&quota, 1, 36525 * DAY, UINT32_MAX) == TOLLGATE_FILL_TIME_TOO_LONG);
    CHECK(tollgate_quota_init(NULL, 1, SECOND, 1) == TOLLGATE_BAD_POINTER);

    /* It is no quota yet. */
    uint32_t tokens = 9, burst = 9;
    uint64_t period_ns = 9;
    CHECK(tollgate_quota_get(&quota, &tokens, &period_ns, &burst) == TOLLGATE_UNINITIALIZED);
    CHECK(tokens == 0 && period_ns == 0 && burst == 0);
    tollgate_bucket bucket;
    CHECK(tollgate_bucket_init(&bucket, &quota) == TOLLGATE_UNINITIALIZED);
    CHECK(tollgate_quota_init(&quota, 7, 3 * SECOND, 2) == TOLLGATE_OK);
    CHECK(tollgate_bucket_init(&bucket, &quota) == TOLLGATE_OK);
    CHECK(tollgate_quota_get(&quota, &tokens, &period_ns, &burst) == TOLLGATE_OK);
    CHECK(tokens == 7 && period_ns == 3 * SECOND && burst == 2);
    CHECK(tollgate_quota_get(&quota, NULL, NULL, NULL) == TOLLGATE_OK);
}

static void buckets(void) {
    tollgate_quota quota;
    tollgate_bucket bucket;
    uint64_t wait = 99;
    uint32_t count = 99;
    CHECK(tollgate_quota_init(&quota, 3, SECOND, 2) == TOLLGATE_OK);
    CHECK(tollgate_bucket_init(&bucket, &quota) == TOLLGATE_OK);

    /* A copy is as good. */
    tollgate_quota copy = quota;
    CHECK(tollgate_try_acquire(&bucket, &copy, 0, 2, &wait) == TOLLGATE_OK && wait == 0);
    CHECK(tollgate_try_acquire(&bucket, &quota, 0, 1, &wait) == TOLLGATE_INSUFFICIENT && wait == 333334);
    CHECK(tollgate_try_acquire(&bucket, &quota, 333333, 1, &wait) == TOLLGATE_INSUFFICIENT && wait == 1);
    CHECK(tollgate_try_acquire(&bucket, &quota, 333334, 1, NULL) == TOLLGATE_OK);
    CHECK(tollgate_try_acquire(&bucket, &quota, 333334, 3, &wait) == TOLLGATE_EXCEEDS_CAPACITY && wait == TOLLGATE_NEVER);
    CHECK(tollgate_retry_after(&bucket, &quota, 333334, 1, &wait) == TOLLGATE_OK && wait == 333333);
    CHECK(tollgate_retry_after(&bucket, &quota, 333334, 3, &wait) == TOLLGATE_EXCEEDS_CAPACITY);
    CHECK(tollgate_refund(&bucket, &quota, 1) == TOLLGATE_OK);
    CHECK(tollgate_available(&bucket, &quota, 333334, &count) == TOLLGATE_OK && count == 1);
    CHECK(tollgate_acquire_up_to(&bucket, &quota, 666667, 9, &count) == TOLLGATE_OK && count == 2);
    CHECK(tollgate_acquire_up_to(&bucket, &quota, 666667, 9, &count) == TOLLGATE_OK && count == 0);
    CHECK(tollgate_reset(&bucket, &quota, 666667) == TOLLGATE_OK);
    CHECK(tollgate_available(&bucket, &quota, 666667, &count) == TOLLGATE_OK && count == 2);
    /* The end of time. */
    CHECK(tollgate_try_acquire(&bucket, &quota, UINT64_MAX, 2, &wait) == TOLLGATE_OK);
    CHECK(tollgate_try_acquire(&bucket, &quota, UINT64_MAX, 1, &wait) == TOLLGATE_INSUFFICIENT);
}

static void mistakes(void) {
    static tollgate_bucket zeros;
    tollgate_bucket ones, bucket;
    tollgate_quota quota;
    uint64_t wait = 99;
    uint32_t count = 99;
    memset(&ones, 0xff, sizeof ones);
    CHECK(tollgate_quota_init(&quota, 3, SECOND, 2) == TOLLGATE_OK);
    CHECK(tollgate_bucket_init(&bucket, &quota) == TOLLGATE_OK);

    CHECK(tollgate_try_acquire(&zeros, &quota, 0, 1, &wait) == TOLLGATE_UNINITIALIZED && wait == TOLLGATE_NEVER);
    CHECK(tollgate_try_acquire(&ones, &quota, 0, 1, NULL) == TOLLGATE_UNINITIALIZED);
    wait = 99;
    CHECK(tollgate_try_acquire(NULL, &quota, 0, 1, &wait) == TOLLGATE_BAD_POINTER && wait == TOLLGATE_NEVER);
    CHECK(tollgate_try_acquire(&bucket, NULL, 0, 1, NULL) == TOLLGATE_BAD_POINTER);
    CHECK(tollgate_bucket_init(NULL, &quota) == TOLLGATE_BAD_POINTER);
    CHECK(tollgate_bucket_init(&bucket, NULL) == TOLLGATE_BAD_POINTER);
    CHECK(tollgate_refund(NULL, &quota, 1) == TOLLGATE_BAD_POINTER);
    CHECK(tollgate_reset(&bucket, NULL, 0) == TOLLGATE_BAD_POINTER);
    CHECK(tollgate_available(&bucket, &quota, 0, NULL) == TOLLGATE_BAD_POINTER);
    CHECK(tollgate_retry_after(&bucket, &quota, 0, 1, NULL) == TOLLGATE_BAD_POINTER);
    /* Not aligned. */
    _Alignas(16) char storage[48];
    tollgate_bucket *odd = (void *)(storage + 1);
    CHECK(tollgate_bucket_init(odd, &quota) == TOLLGATE_BAD_POINTER);
    CHECK(tollgate_try_acquire(odd, &quota, 0, 1, NULL) == TOLLGATE_BAD_POINTER);

    uint64_t period_ns = 99;
    uint32_t burst = 99;
    CHECK(tollgate_quota_get(&quota, (void *)(storage + 1), &period_ns, &burst) == TOLLGATE_BAD_POINTER);
    CHECK(period_ns == 0 && burst == 0);
    uint64_t *odd_wait = (void *)(storage + 1);
    CHECK(tollgate_try_acquire(&bucket, &quota, 0, 1, odd_wait) == TOLLGATE_BAD_POINTER);
    /* What was to be told has a value all the same. */
    wait = count = 99;
    CHECK(tollgate_retry_after(&bucket, &quota, 0, 3, &wait) == TOLLGATE_EXCEEDS_CAPACITY && wait == TOLLGATE_NEVER);
    CHECK(tollgate_available(&zeros, &quota, 0, &count) == TOLLGATE_UNINITIALIZED && count == 0);

    /* Nothing was taken by any of that, nor where the answer has no place. */
    CHECK(tollgate_acquire_up_to(&bucket, &quota, 0, 2, NULL) == TOLLGATE_BAD_POINTER);
    CHECK(tollgate_available(&bucket, &quota, 0, &count) == TOLLGATE_OK && count == 2);
}

static void texts(void) {
    const char *none = tollgate_strerror(-1);
    CHECK(strcmp(none, "no status of tollgate") == 0);
    CHECK(strstr(tollgate_strerror(TOLLGATE_INSUFFICIENT), "wait") != NULL);
    CHECK(tollgate_strerror(1000) == none);
}

static void pools(void) {
    static tollgate_pool zeros;
    tollgate_pool pool;
    CHECK(tollgate_pool_init(&pool, 10) == TOLLGATE_OK);
    CHECK(tollgate_pool_claim(&pool, 11) == TOLLGATE_EXCEEDS_CAPACITY);
    CHECK(tollgate_pool_available(&pool) == 10);
    CHECK(tollgate_pool_claim(&pool, 8) == TOLLGATE_OK);
    CHECK(tollgate_pool_claim(&pool, 3) == TOLLGATE_INSUFFICIENT);
    CHECK(tollgate_pool_claim(&pool, 11) == TOLLGATE_EXCEEDS_CAPACITY);
    CHECK(tollgate_pool_refill(&pool, UINT64_MAX) == 8);
    CHECK(tollgate_pool_available(&pool) == 10);
    CHECK(tollgate_pool_drain(&pool) == 10);
    CHECK(tollgate_pool_available(&pool) == 0);

    CHECK(tollgate_pool_claim(&zeros, 1) == TOLLGATE_EXCEEDS_CAPACITY);
    CHECK(tollgate_pool_claim(NULL, 1) == TOLLGATE_BAD_POINTER);
    CHECK(tollgate_pool_init(NULL, 1) == TOLLGATE_BAD_POINTER);
    CHECK(tollgate_pool_refill(NULL, 1) == 0);
    CHECK(tollgate_pool_drain(NULL) == 0);
    CHECK(tollgate_pool_available(NULL) == 0);
}

enum { TOKENS = 20000, THREADS = 4 };
static tollgate_quota race_quota;
static tollgate_bucket race_bucket;

static void *take_all(void *granted) {
    while (tollgate_try_acquire(&race_bucket, &race_quota, 0, 1, NULL) != TOLLGATE_INSUFFICIENT) {
        ++*(int *)granted;
    }
    return NULL;
}

/* Threads take all that there is: together, that. */
static void race(void) {
    pthread_t threads[THREADS];
    int granted[THREADS] = {0}, sum = 0;
    CHECK(tollgate_quota_init(&race_quota, 1, DAY, TOKENS) == TOLLGATE_OK);
    CHECK(tollgate_bucket_init(&race_bucket, &race_quota) == TOLLGATE_OK);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, take_all, &granted[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        sum += granted[i];
    }
    CHECK(sum == TOKENS);
}

int main(void) {
    quotas();
    buckets();
    mistakes();
    texts();
    pools();
    race();
    return finish();
}
