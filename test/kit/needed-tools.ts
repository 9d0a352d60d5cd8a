import { TOOLS, type ToolName } from '../../operator/garden/toolchain/tools.ts';
import { tierOf } from './sets.ts';

/** All of Kubernetes once more: 10 to 28 minutes of two cores. */
export const OLDER_KUBERNETES: readonly ToolName[] = [
  'kube-apiserver-1.35',
  'kube-controller-manager-1.35',
  'kube-scheduler-1.35',
  'kubelet-1.35',
  'kube-proxy-1.35',
  'kubeadm-1.35',
];

/** What each file of a tier needs. */
const OF_TIER: Readonly<Record<string, readonly ToolName[]>> = {
  integration: ['etcd', 'kube-apiserver', 'kubectl'],
  // In the order in which a garden needs them.
  e2e: [
    'etcd',
    'kube-apiserver',
    'kube-controller-manager',
    'kube-scheduler',
    'pause',
    'kubelet',
    'kube-proxy',
    'containerd',
    'containerd-shim-runc-v2',
    'ctr',
    'coredns',
    'kubectl',
    'kwok',
    'echo',
  ],
};

/** What some files need besides, by path or folder. A tool that is missing here is made within the time of the file that asks for it. */
const BESIDES: Readonly<Record<string, readonly ToolName[]>> = {
  'test/integration/burst/': ['kube-scheduler'],
  'test/integration/cloud/': ['pulumi'],
  'test/integration/conformance/aws.test.ts': ['pulumi'],
  'test/integration/conformance/azure.test.ts': ['pulumi'],
  'test/integration/conformance/gcp.test.ts': ['pulumi'],
  'test/integration/garden/': ['kube-controller-manager', 'registry'],
  'test/integration/hubs/': ['kube-controller-manager', 'kube-scheduler'],
  'test/integration/managed/bad-input.test.ts': ['pulumi'],
  'test/integration/managed/depleted.test.ts': ['pulumi'],
  'test/integration/pulumi/': ['pulumi'],
  'test/integration/shoot/': ['kube-scheduler'],
  'test/e2e/apis.test.ts': ['metrics-server'],
  'test/e2e/argo-cd.test.ts': ['argo-cd', 'redis-server', 'git'],
  'test/e2e/backups.test.ts': ['etcdctl', 'etcdutl'],
  'test/e2e/chart.test.ts': ['helm'],
  'test/e2e/hosted-in-a-cloud.test.ts': ['pulumi', 'proxy-server', 'proxy-agent'],
  'test/e2e/managed-cluster.test.ts': ['pulumi'],
  'test/e2e/self-managed.test.ts': ['kubeadm', 'etcdctl'],
  'test/e2e/self-managed-in-a-cloud.test.ts': ['kubeadm', 'etcdctl', 'pulumi'],
  'test/e2e/self-managed-upgrade.test.ts': [...OLDER_KUBERNETES, 'kubeadm', 'etcdctl'],
  'test/e2e/self-managed-upgrade-in-a-cloud.test.ts': [...OLDER_KUBERNETES, 'kubeadm', 'etcdctl', 'pulumi'],
  'test/e2e/tunnel.test.ts': ['proxy-server', 'proxy-agent'],
  'test/e2e/upgrade.test.ts': OLDER_KUBERNETES,
};

/** Paths and folders that need more than their tier, for the test that holds the table. */
export const NEEDING_MORE = Object.keys(BESIDES);

/** Tools that a file needs, in the order in which they are made. */
export function toolsOf(file: string): ToolName[] {
  const besides = NEEDING_MORE.filter((entry) => file === entry || (entry.endsWith('/') && file.startsWith(entry)));
  return [...new Set([...(OF_TIER[tierOf(file)] ?? []), ...besides.flatMap((entry) => BESIDES[entry]!)])];
}

/** Tools that are made together, and the files that can begin then. */
export interface ToolStep {
  readonly tools: readonly ToolName[];
  readonly files: readonly string[];
}

/**
 * In which order the tools of a run are made: those of its integration tests, which can begin with few; those of end-to-end tests that need a
 * garden and no more; and those of each other file, the quickest to build first. Of two stages the first is served first.
 */
export function toolSteps(stages: readonly (readonly string[])[]): ToolStep[] {
  const steps: { tools: ToolName[]; files: string[] }[] = [];
  const stepOf = new Map<ToolName, number>();
  const add = (files: readonly string[]) => {
    const tools = [...new Set(files.flatMap(toolsOf))].filter((name) => !stepOf.has(name));
    if (tools.length > 0) steps.push({ tools, files: [] });
    for (const name of tools) stepOf.set(name, steps.length - 1);
    // With the step that makes the last of its tools: what is built for others meanwhile is none of its concern.
    for (const file of files) steps[Math.max(...toolsOf(file).map((name) => stepOf.get(name)!))]!.files.push(file);
  };
  for (const files of stages) {
    add(files.filter((file) => tierOf(file) === 'integration'));
    const garden = files.filter((file) => tierOf(file) === 'e2e');
    const isPlain = (file: string) => toolsOf(file).length === OF_TIER.e2e!.length;
    add(garden.filter(isPlain));
    const heavy = garden.filter((file) => !isPlain(file));
    for (const file of heavy.toSorted((one, other) => weightOf(one) - weightOf(other))) add([file]);
  }
  return steps;
}

/** How long a file's tools take to build, all of them; only proportions matter. */
const weightOf = (file: string): number =>
  toolsOf(file).reduce((total, name) => total + (TOOLS[name].build?.weight ?? 0), 0);
