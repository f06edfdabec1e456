// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * tollgate in the Linux kernel: lines of the log at a limited rate, and a bucket from which threads on all processors and a
 * timer's hard interrupt take at once. The results are lines of the log, too.
 */
#define pr_fmt(fmt) "tollgate: " fmt

#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/version.h>

#include "tollgate.h"

static u64 now_us(void)
{
	return ktime_to_us(ktime_get_boottime());
}

/* A limit on lines of the log, for any context: nothing here sleeps or locks. */
struct log_limit {
	tollgate_quota quota;
	tollgate_bucket bucket;
	atomic_t suppressed;
};

static tollgate_status log_limit_init(struct log_limit *limit, u32 lines, u64 period_ns, u32 burst)
{
	tollgate_status status = tollgate_quota_init(&limit->quota, lines, period_ns, burst);

	atomic_set(&limit->suppressed, 0);
	return status == TOLLGATE_OK ? tollgate_bucket_init(&limit->bucket, &limit->quota) : status;
}

static bool log_limit_allows(struct log_limit *limit)
{
	int suppressed;

	if (tollgate_try_acquire(&limit->bucket, &limit->quota, now_us(), 1, NULL) != TOLLGATE_OK) {
		atomic_inc(&limit->suppressed);
		return false;
	}
	suppressed = atomic_xchg(&limit->suppressed, 0);
	if (suppressed)
		pr_info("%d lines suppressed\n", suppressed);
	return true;
}

#define pr_info_limited(limit, ...) (log_limit_allows(limit) ? (pr_info(__VA_ARGS__), true) : false)

static unsigned int passed, failed;

#define CHECK(condition, ...)                                                                                          \
	do {                                                                                                           \
		bool holds = condition;                                                                                \
		*(holds ? &passed : &failed) += 1;                                                                     \
		pr_info(__VA_ARGS__);                                                                                  \
		if (!holds)                                                                                            \
			pr_err("FAILED: %s\n", #condition);                                                            \
	} while (0)

enum { LINES_A_SECOND = 10, BURST = 3 };

/* Asks for lines as fast as it can, for a second and a twentieth: thirteen. */
static void log_lines(void)
{
	static struct log_limit limit;
	unsigned int asked = 0, written = 0, due, lost;
	u64 start, elapsed = 0, before, stood_still = 0;

	CHECK(log_limit_init(&limit, LINES_A_SECOND, NSEC_PER_SEC, BURST) == TOLLGATE_OK, "a limit: %d lines a second, %d at once\n",
	      LINES_A_SECOND, BURST);
	start = now_us();
	do {
		written += pr_info_limited(&limit, "line %u\n", asked);
		asked++;
		before = elapsed;
		elapsed = now_us() - start;
		/* The host had something else to do: tokens may have found no room. */
		if (elapsed - before > USEC_PER_SEC / LINES_A_SECOND)
			stood_still += elapsed - before;
		cond_resched();
	} while (elapsed < USEC_PER_SEC + USEC_PER_SEC / 20);
	due = BURST + elapsed * LINES_A_SECOND / USEC_PER_SEC;
	/* And the last one may have been due between the last call and the last look at the clock. */
	lost = 1 + stood_still * LINES_A_SECOND / USEC_PER_SEC;
	CHECK(written <= due && written + lost >= due, "lines: %u of %u written in %llu us, %u due\n", written, asked, elapsed, due);
}

enum { TOKENS = 2000000 };

/* What is raced for: a bucket, and, to show that it is a race, a number that is read and then written. */
static tollgate_quota race_quota;
static tollgate_bucket race_bucket;
static int control = TOKENS;

struct share {
	int of_bucket, of_control;
};

static bool take(struct share *share)
{
	tollgate_status status = tollgate_try_acquire(&race_bucket, &race_quota, now_us(), 1, NULL);
	int seen = READ_ONCE(control);

	if (status == TOLLGATE_OK)
		share->of_bucket++;
	if (seen > 0) {
		cpu_relax();
		WRITE_ONCE(control, seen - 1);
		share->of_control++;
	}
	return status != TOLLGATE_INSUFFICIENT || seen > 0;
}

struct racer {
	struct share share;
	struct completion done;
};

static struct racer racers[8];
static struct share interrupts;
static struct hrtimer timer;

static int race(void *racer_)
{
	struct racer *racer = racer_;
	int n;

	for (n = 1; take(&racer->share); n++) {
		if (n % 1024 == 0)
			cond_resched();
	}
	/* Not a return, which would be code of a module that may be gone. */
	kthread_complete_and_exit(&racer->done, 0);
}

static enum hrtimer_restart interrupt(struct hrtimer *timer)
{
	if (!in_hardirq() || !take(&interrupts))
		return HRTIMER_NORESTART;
	hrtimer_forward_now(timer, ns_to_ktime(50 * NSEC_PER_USEC));
	return HRTIMER_RESTART;
}

static void race_for_tokens(void)
{
	int threads = 0, of_bucket, of_control, i;
	unsigned int cpu;

	CHECK(tollgate_quota_init(&race_quota, 1, 86400 * NSEC_PER_SEC, TOKENS) == TOLLGATE_OK &&
	      tollgate_bucket_init(&race_bucket, &race_quota) == TOLLGATE_OK, "a race for %d tokens\n", TOKENS);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(&timer, interrupt, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
#else
	hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	timer.function = interrupt;
#endif
	hrtimer_start(&timer, ns_to_ktime(50 * NSEC_PER_USEC), HRTIMER_MODE_REL_HARD);
	for_each_online_cpu(cpu) {
		struct racer *racer = &racers[threads];
		struct task_struct *task;

		if (threads == ARRAY_SIZE(racers))
			break;
		init_completion(&racer->done);
		task = kthread_create_on_cpu(race, racer, cpu, "tollgate/%u");
		if (IS_ERR(task))
			continue;
		wake_up_process(task);
		threads++;
	}
	for (i = 0; i < threads; i++)
		wait_for_completion(&racers[i].done);
	hrtimer_cancel(&timer);

	of_bucket = interrupts.of_bucket;
	of_control = interrupts.of_control;
	for (i = 0; i < threads; i++) {
		of_bucket += racers[i].share.of_bucket;
		of_control += racers[i].share.of_control;
	}
	CHECK(threads > 1 && interrupts.of_bucket > 0, "%d threads, and %d grants in hard interrupts\n", threads, interrupts.of_bucket);
	CHECK(of_bucket == TOKENS, "the race: %d of %d tokens granted\n", of_bucket, TOKENS);
	CHECK(of_control != TOKENS, "without a bucket: %d of %d\n", of_control, TOKENS);
}

static int __init demo_init(void)
{
	log_lines();
	race_for_tokens();
	pr_info("%u passed, %u failed\n", passed, failed);
	return failed ? -EINVAL : 0;
}

static void __exit demo_exit(void)
{
}

module_init(demo_init);
module_exit(demo_exit);
MODULE_DESCRIPTION("tollgate: rate-limited lines of the log, and a race for tokens");
MODULE_LICENSE("Dual MIT/GPL");
