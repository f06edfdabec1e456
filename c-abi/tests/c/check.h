/* What each program of these tests has: checks that are counted, and a line at the end. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>

static int passed, failed;

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (condition) {                                                       \
            passed++;                                                          \
        } else {                                                               \
            failed++;                                                          \
            printf("%s:%d: FAILED: %s\n", __FILE__, __LINE__, #condition);     \
        }                                                                      \
    } while (0)

static inline int finish(void) {
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0 || passed == 0;
}

#endif
