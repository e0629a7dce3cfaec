/* SPDX-License-Identifier: MIT */
/*
 * Somebody's `> file` must not kill a training. Whoever maps a file that another process makes shorter
 * gets SIGBUS at its next store, and without a handler that is the end. So there is one, which takes
 * SIGBUS only for pages of our own file: it maps anonymous memory in their place, ends recording and
 * lets the store happen. An error of the disk under such a page ends in the same way.
 *
 * The program must not notice. The handler is installed before the file is made, and only if nobody wants
 * the signal; sigaction is not intercepted, so a program that installs its own later has its own. For
 * any other SIGBUS the default comes back and the fault repeats: same status, same address, same core.
 * The kernel takes the pages away one after the other: the header, there when the first fault came, may
 * go while the handler says in it why recording ends. So SIGBUS stays open: that is one more fault, with
 * fewer pages left. The handler is never removed: calls after exit() began are recorded too, and this
 * library is never unloaded.
 * Called by start.c; the handler makes system calls and nothing else.
 */
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "recorder.h"

/* The process that records: in a forked child our addresses may be another file's. */
static int watcher;

static bool ours(const siginfo_t *info)
{
	return info->si_code == BUS_ADRERR && gt_load_relaxed(&watcher) == gt_pid() &&
	       gt_file_has((uintptr_t)info->si_addr);
}

/* As without us. What is no fault of an instruction does not repeat, so it is sent again as it came. */
static void give_back(int signal, siginfo_t *info)
{
	struct sigaction none = {.sa_handler = SIG_DFL};

	sigaction(signal, &none, NULL);
	if (info->si_code > 0 && info->si_code != BUS_MCEERR_AO)
		return;
	if (syscall(SYS_rt_tgsigqueueinfo, gt_pid(), gt_tid(), signal, info))
		syscall(SYS_tgkill, gt_pid(), gt_tid(), signal);
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	int saved = errno;

	if (ours(info) && gt_file_detach((uintptr_t)info->si_addr))
		gt_stop(GT_STOP_TRUNCATED);
	else
		give_back(signal, info);
	errno = saved;
}

void gt_truncated_watch(void)
{
	struct sigaction handler = {.sa_sigaction = on_fault,
				    .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER};
	struct sigaction old;

	gt_store_relaxed(&watcher, gt_pid());
	sigfillset(&handler.sa_mask);
	sigdelset(&handler.sa_mask, SIGBUS);
	if (sigaction(SIGBUS, NULL, &old) || old.sa_handler != SIG_DFL)
		return;
	if (!sigaction(SIGBUS, &handler, &old) && old.sa_handler != SIG_DFL)
		sigaction(SIGBUS, &old, NULL); /* somebody's, in between */
}
