/* Limits in files: every function of tollgate_file.h. The argument is an empty folder. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "tollgate_file.h"

#define SECOND UINT64_C(1000000000)
#define DAY (86400 * SECOND)

static char path[4096];

static tollgate_quota make_quota(uint32_t tokens, uint64_t period_ns, uint32_t burst) {
    tollgate_quota quota;
    CHECK(tollgate_quota_init(&quota, tokens, period_ns, burst) == TOLLGATE_OK);
    return quota;
}

static void opening(void) {
    tollgate_quota quota = make_quota(1, DAY, 10);
    tollgate_file *file = (void *)path;
    CHECK(strcmp(tollgate_last_error(), "") == 0);
    CHECK(tollgate_file_open(path, &file) == TOLLGATE_NOT_FOUND && file == NULL);
    CHECK(strstr(tollgate_last_error(), path) != NULL);
    CHECK(tollgate_file_create(path, &quota, 0666, &file) == TOLLGATE_BAD_MODE && file == NULL);
    CHECK(tollgate_file_create(path, &quota, 0600, &file) == TOLLGATE_OK && file != NULL);
    tollgate_file_close(file);
    CHECK(tollgate_file_create(path, &quota, 0600, &file) == TOLLGATE_ALREADY_EXISTS);
    CHECK(tollgate_file_open("/", &file) == TOLLGATE_NOT_A_FILE);
    CHECK(tollgate_file_open("/dev/null/limit", &file) == TOLLGATE_IO);
    CHECK(strstr(tollgate_last_error(), "Not a directory") != NULL);

    tollgate_quota other = make_quota(2, DAY, 10);
    CHECK(tollgate_file_open_or_create(path, &other, 0600, &file) == TOLLGATE_QUOTA_MISMATCH);
    CHECK(tollgate_file_open_or_create(path, &quota, 0600, &file) == TOLLGATE_OK);
    tollgate_file_close(file);
    tollgate_file_close(NULL);

    tollgate_quota none = {0};
    file = (void *)path;
    CHECK(tollgate_file_create(path, &none, 0600, &file) == TOLLGATE_UNINITIALIZED && file == NULL);
    CHECK(strstr(tollgate_last_error(), "initialise it") != NULL);
    CHECK(tollgate_file_open(NULL, &file) == TOLLGATE_BAD_POINTER);
    CHECK(tollgate_file_open(path, NULL) == TOLLGATE_BAD_POINTER);
    CHECK(tollgate_file_open_or_create(path, NULL, 0600, &file) == TOLLGATE_BAD_POINTER);
}

static void calls(void) {
    tollgate_file *file;
    uint64_t wait = 99;
    uint32_t count = 99;
    CHECK(tollgate_file_open(path, &file) == TOLLGATE_OK);
    CHECK(tollgate_file_try_acquire(file, 4, &wait) == TOLLGATE_OK && wait == 0);
    CHECK(tollgate_file_acquire(file, 1) == TOLLGATE_OK);
    CHECK(tollgate_file_acquire_timeout(file, 1, 0) == TOLLGATE_OK);
    CHECK(tollgate_file_available(file, &count) == TOLLGATE_OK && count == 4);
    CHECK(tollgate_file_acquire_up_to(file, 9, &count) == TOLLGATE_OK && count == 4);
    CHECK(tollgate_file_try_acquire(file, 1, &wait) == TOLLGATE_INSUFFICIENT);
    CHECK(wait > 0 && wait <= UINT64_C(86401000000));
    CHECK(tollgate_file_acquire_timeout(file, 1, 1000) == TOLLGATE_INSUFFICIENT);
    CHECK(tollgate_file_retry_after(file, 1, &wait) == TOLLGATE_OK && wait > 0);
    CHECK(tollgate_file_try_acquire(file, 11, &wait) == TOLLGATE_EXCEEDS_CAPACITY && wait == TOLLGATE_NEVER);
    CHECK(tollgate_file_refund(file, 2) == TOLLGATE_OK);
    CHECK(tollgate_file_available(file, &count) == TOLLGATE_OK && count == 2);
    CHECK(tollgate_file_reset(file) == TOLLGATE_OK);
    CHECK(tollgate_file_available(file, &count) == TOLLGATE_OK && count == 10);

    CHECK(tollgate_file_report(file, false) == TOLLGATE_OK && tollgate_file_report(file, true) == TOLLGATE_OK);
    tollgate_counts counts;
    CHECK(tollgate_file_counts(file, &counts) == TOLLGATE_OK);
    CHECK(counts.granted_calls == 4 && counts.granted_tokens == 10 && counts.refused_calls == 3);
    CHECK(counts.refunded_tokens == 2 && counts.reported_ok == 1 && counts.reported_overload == 1);
    CHECK(tollgate_file_counts(NULL, &counts) == TOLLGATE_BAD_POINTER && counts.granted_calls == 0);
    CHECK(tollgate_file_counts(file, NULL) == TOLLGATE_BAD_POINTER);
    CHECK(tollgate_file_report(NULL, true) == TOLLGATE_BAD_POINTER);
    CHECK(tollgate_file_report((const tollgate_file *)((const char *)file + 1), true) == TOLLGATE_BAD_POINTER);

    CHECK(tollgate_file_try_acquire(NULL, 1, &wait) == TOLLGATE_BAD_POINTER && wait == TOLLGATE_NEVER);
    CHECK(tollgate_file_acquire(NULL, 1) == TOLLGATE_BAD_POINTER);
    CHECK(tollgate_file_acquire_up_to(file, 1, NULL) == TOLLGATE_BAD_POINTER);
    CHECK(tollgate_file_available(file, &count) == TOLLGATE_OK && count == 10);
    tollgate_file_close(file);
}

static void steering(void) {
    tollgate_file *file;
    uint64_t wait = 0;
    uint32_t count = 99;
    tollgate_quota quota = make_quota(5, DAY, 5), read;
    tollgate_bucket bucket;
    CHECK(tollgate_file_open(path, &file) == TOLLGATE_OK);
    CHECK(tollgate_file_set_quota(file, &quota) == TOLLGATE_OK);
    CHECK(tollgate_file_available(file, &count) == TOLLGATE_OK && count == 5);
    CHECK(tollgate_file_quota(file, &read) == TOLLGATE_OK);
    CHECK(tollgate_quota_get(&read, &count, NULL, NULL) == TOLLGATE_OK && count == 5);
    /* What was read is a quota. */
    CHECK(tollgate_bucket_init(&bucket, &read) == TOLLGATE_OK);
    CHECK(tollgate_try_acquire(&bucket, &read, 0, 5, NULL) == TOLLGATE_OK);
    CHECK(tollgate_file_pause(file, 60000000) == TOLLGATE_OK);
    CHECK(tollgate_file_try_acquire(file, 1, &wait) == TOLLGATE_PAUSED && wait > 0 && wait <= 60000000);
    CHECK(tollgate_file_resume(file) == TOLLGATE_OK);
    CHECK(tollgate_file_try_acquire(file, 1, NULL) == TOLLGATE_OK);
    CHECK(tollgate_file_set_quota(file, NULL) == TOLLGATE_BAD_POINTER);
    CHECK(tollgate_file_reset(file) == TOLLGATE_OK);
    tollgate_file_close(file);
}

/* Two processes take all that there is, by their own handles: together, that. */
static void processes(void) {
    int granted = 0, status = 0;
    pid_t child = fork();
    CHECK(child >= 0);
    tollgate_file *file;
    tollgate_status opened = tollgate_file_open(path, &file);
    while (opened == TOLLGATE_OK && tollgate_file_try_acquire(file, 1, NULL) == TOLLGATE_OK) {
        granted++;
    }
    if (child == 0) {
        _exit(granted);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    CHECK(granted + WEXITSTATUS(status) == 5);
    tollgate_file_close(file);
}

/* A file that is damaged in use is a status, and no signal. */
static void damage(void) {
    tollgate_file *file;
    CHECK(tollgate_file_open(path, &file) == TOLLGATE_OK);
    CHECK(truncate(path, 0) == 0);
    CHECK(tollgate_file_try_acquire(file, 1, NULL) == TOLLGATE_DAMAGED);
    CHECK(unlink(path) == 0);
    tollgate_file_close(file);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    snprintf(path, sizeof path, "%s/limit", argv[1]);
    opening();
    calls();
    steering();
    processes();
    damage();
    return finish();
}
