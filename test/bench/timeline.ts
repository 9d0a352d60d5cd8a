import { summarize } from './statistics.ts';

/** What can be seen of the making of a cluster, in no order. `[component, what happened]`. */
export const MILESTONES = {
  posted: ['WorkerCluster', 'posted'],
  shoot: ['operator', 'Shoot made'],
  namespace: ['operator', 'namespace in the seed made'],
  'etcd.object': ['operator', 'etcd StatefulSet made'],
  'etcd.pod': ['etcd', 'pod made'],
  'etcd.scheduled': ['etcd', 'pod scheduled'],
  'etcd.process': ['etcd', 'process started'],
  'etcd.ready': ['etcd', 'pod Ready'],
  'apiserver.object': ['operator', 'kube-apiserver Deployment made'],
  'apiserver.pod': ['kube-apiserver', 'pod made'],
  'apiserver.scheduled': ['kube-apiserver', 'pod scheduled'],
  'apiserver.process': ['kube-apiserver', 'process started'],
  'apiserver.readyz': ['kube-apiserver', '/readyz through the Service says ok'],
  'apiserver.ready': ['kube-apiserver', 'pod Ready'],
  'kcm.pod': ['kube-controller-manager', 'pod made'],
  'kcm.process': ['kube-controller-manager', 'process started'],
  'kcm.ready': ['kube-controller-manager', 'pod Ready'],
  'scheduler.pod': ['kube-scheduler', 'pod made'],
  'scheduler.process': ['kube-scheduler', 'process started'],
  'scheduler.ready': ['kube-scheduler', 'pod Ready'],
  kubeconfig: ['operator', 'kubeconfig Secret made'],
  usable: ['cluster', 'usable: a namespace was made with it'],
  'machine.pod': ['machine', 'pod made'],
  'machine.process': ['machine', 'entry script started'],
  'machine.containerd': ['machine', 'containerd started'],
  'machine.kubelet': ['machine', 'kubelet started'],
  'node.registered': ['node', 'registered'],
  'node.ready': ['node', 'Ready'],
  'dns.scheduled': ['CoreDNS', 'pod scheduled'],
  'dns.ready': ['CoreDNS', 'pod Ready'],
  'pod.scheduled': ['first pod', 'scheduled'],
  'pod.running': ['first pod', 'running'],
  ready: ['WorkerCluster', 'Ready'],
  joined: ['Membership', 'Joined'],
} as const satisfies Record<string, readonly [string, string]>;

export type Milestone = keyof typeof MILESTONES;

/** Seconds after the POST of the WorkerCluster; those that were not seen are absent. */
export type Marks = Partial<Record<Milestone, number>>;

export interface TimelineEntry {
  milestone: Milestone;
  component: string;
  what: string;
  /** Seconds after the POST. */
  minimum: number;
  median: number;
  maximum: number;
}

/** Milestones of several creations in the order of their medians. */
export function timeline(runs: readonly Marks[]): TimelineEntry[] {
  const entries = (Object.keys(MILESTONES) as Milestone[]).flatMap((milestone) => {
    const summary = summarize(runs.flatMap((marks) => marks[milestone] ?? []));
    if (!summary) return [];
    const [component, what] = MILESTONES[milestone];
    const { minimum, median, maximum } = summary;
    return [{ milestone, component, what, minimum, median, maximum }];
  });
  return entries.sort((a, b) => a.median - b.median);
}

/** A line for each milestone: when, how long after the line before, the range over all runs, and where that lies. */
export function renderTimeline(entries: readonly TimelineEntry[], width = 40): string {
  const end = Math.max(...entries.map((entry) => entry.median), 0.001);
  const widest = Math.max(...entries.map((entry) => entry.component.length), 0);
  const lines = entries.map(({ component, what, minimum, median, maximum }, i) => {
    const step = median - (entries[i - 1]?.median ?? 0);
    const at = Math.round((median / end) * (width - 1));
    const place = `${'-'.repeat(at)}o`.padEnd(width);
    const range = `${minimum.toFixed(2)}-${maximum.toFixed(2)}`;
    return `${median.toFixed(2).padStart(7)} ${`+${step.toFixed(2)}`.padStart(6)}  ${range.padStart(13)}  ${place}  ${component.padEnd(widest)}  ${what}`;
  });
  const head = `${'median'.padStart(7)} ${'step'.padStart(6)}  ${'range'.padStart(13)}  ${'seconds after the POST'.padEnd(width)}  `;
  return [head.trimEnd(), ...lines].join('\n');
}
