import type { ToolName } from '../../operator/garden/toolchain/tools.ts';
import { isAll } from './rotation.ts';

/** How many end-to-end files run at once: each waits for machines and control planes most of the time. */
export const LANES = 2;

/** Files that measure what a garden does while nothing happens: other work on the machine would be measured as well. */
export const QUIET: readonly string[] = ['test/e2e/idle.test.ts'];

/** All of Kubernetes once more: 10 to 28 minutes of two cores, which no run of CI has. */
export const OLDER_KUBERNETES: readonly ToolName[] = [
  'kube-apiserver-1.35',
  'kube-controller-manager-1.35',
  'kube-scheduler-1.35',
  'kubelet-1.35',
  'kube-proxy-1.35',
  'kubeadm-1.35',
];

/** Files that need tools which are made last, since only they need them and they take minutes. */
export const LATE: Readonly<Record<string, readonly ToolName[]>> = {
  'test/e2e/apis.test.ts': ['metrics-server'],
  'test/e2e/argo-cd.test.ts': ['argo-cd', 'redis-server', 'git'],
  'test/e2e/chart.test.ts': ['helm'],
  'test/e2e/upgrade.test.ts': OLDER_KUBERNETES,
  'test/e2e/self-managed-upgrade.test.ts': OLDER_KUBERNETES,
  'test/e2e/self-managed-upgrade-in-a-cloud.test.ts': OLDER_KUBERNETES,
};

/** Whether this run makes what takes longer than CI has. Other runs use it where it is there. */
export const hasTimeForAll = (): boolean => isAll() && !process.env.COPPICE_TESTS_END;

/** Tools that are made last for these files in this run. */
export const lateTools = (files: readonly string[]): ToolName[] =>
  files.flatMap((file) => LATE[file] ?? []).filter((name) => hasTimeForAll() || !OLDER_KUBERNETES.includes(name));

/** A garden that was brought up, for files that come one after the other. */
export interface Lane<Garden> {
  garden: Garden;
  takeDown?: (() => Promise<void>) | undefined;
}

interface Work<Garden> {
  /** Brings a garden up. The second is asked for while the first is worked in. */
  open: () => Promise<Lane<Garden>>;
  /** Runs a file in a garden; must not reject. @returns whether it came to its end, and so has tidied up */
  run: (file: string, garden: Garden) => Promise<boolean>;
  /** Is told of a garden that does not come up, or not down. */
  fail: (message: string) => void;
  /** How many gardens there are at most. */
  lanes?: number;
  /** Files that run when no other does any more, in the garden that is left. */
  quiet?: readonly string[];
  /** Resolves when nothing else is on that `quiet` files would notice. */
  calm?: Promise<unknown> | undefined;
  /** Files that are begun when this has resolved, and that others go before until then. */
  late?: { files: readonly string[]; ready: Promise<unknown> } | undefined;
}

/**
 * Runs each file once, in the order given, as many at once as there are lanes. Each lane has a garden to itself, so that a file may restart
 * the operator, change the seed or count all that there is without another one seeing it. After a file that was ended the garden is made
 * anew: clusters that nobody waits for any more would slow all that follow. `quiet` files come last, one after the other. Files that no
 * garden came up for are not run.
 */
export async function inLanes<Garden>(
  files: readonly string[],
  { open, run, fail, lanes = LANES, quiet = [], calm = Promise.resolve(), late }: Work<Garden>,
): Promise<void> {
  let isReady = late === undefined;
  void late?.ready.then(() => {
    isReady = true;
  });
  const take = (queue: string[]): string | undefined => {
    const index = queue.findIndex((file) => isReady || !late?.files.includes(file));
    return index < 0 ? undefined : queue.splice(index, 1)[0];
  };
  const waiting = files.filter((file) => !quiet.includes(file));
  const last = files.filter((file) => quiet.includes(file));
  let atWork = 0;
  const openOne = () =>
    open().catch((error: Error) => {
      fail(`no garden: ${error.message}`);
      return undefined;
    });
  const work = async (first: Lane<Garden>) => {
    let lane: Lane<Garden> | undefined = first;
    const close = async () => lane?.takeDown?.().catch((error: Error) => fail(error.message));
    const runAll = async (queue: string[]) => {
      while (lane && queue.length > 0) {
        const file = take(queue);
        if (file === undefined) {
          await late?.ready;
          continue;
        }
        const hasEnded = await run(file, lane.garden);
        if (hasEnded || !lane.takeDown || queue.length === 0) continue;
        await close();
        lane = await openOne();
      }
    };
    atWork++;
    await runAll(waiting);
    atWork--;
    if (atWork === 0 && last.length > 0) await calm.then(() => runAll(last));
    // At once: the other lane has the processors to itself then.
    await close();
  };
  const running: Promise<void>[] = [];
  for (let lane = 1; lane === 1 || (lane <= lanes && waiting.length > 0); lane++) {
    // One after the other: two that come up on two cores keep each other.
    const opened = await openOne();
    if (opened) running.push(work(opened));
  }
  await Promise.all(running);
}
