import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { keptPod } from '../../operator/clusters/kept-pod.ts';
import type { Pod } from '../../operator/kube/resources.ts';

const NODES = 10_000;
const PODS_EACH = 30;
/** Workloads: as many different templates as a large cluster may have. */
const TEMPLATES = 500;
const MIB = 2 ** 20;

/** A pod as an API server sends it, with what its admission adds and its kubelet reports. */
export function sentPod(index: number): Pod {
  const template = index % TEMPLATES;
  const app = `service-${template}`;
  const time = '2026-11-22T12:00:00Z';
  const condition = (type: string) => ({ type, status: 'True', lastTransitionTime: time });
  return JSON.parse(
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: `${app}-7d4b9c6f5-${index.toString(36).padStart(5, '0')}`,
        namespace: `team-${template % 40}`,
        uid: `00000000-0000-4000-8000-${index.toString(16).padStart(12, '0')}`,
        resourceVersion: String(1_000_000 + index),
        creationTimestamp: time,
        labels: { app, 'pod-template-hash': '7d4b9c6f5', 'app.kubernetes.io/part-of': 'shop' },
        annotations: { 'prometheus.io/scrape': 'true', 'checksum/config': 'f'.repeat(64) },
        ownerReferences: [
          { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: `${app}-7d4b9c6f5`, uid: `u-${template}` },
        ],
      },
      spec: {
        nodeName: `node-${Math.floor(index / PODS_EACH)}`,
        serviceAccountName: app,
        containers: [
          {
            name: 'app',
            image: `registry.example/${app}:1.2.3`,
            env: Array.from({ length: 12 }, (_, i) => ({ name: `SETTING_${i}`, value: `value of setting ${i}` })),
            ports: [{ containerPort: 8080 }],
            resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '256Mi' } },
            volumeMounts: [{ name: `kube-api-access-${index}`, mountPath: '/var/run/secrets' }],
          },
        ],
        tolerations: ['not-ready', 'unreachable'].map((key) => ({
          key: `node.kubernetes.io/${key}`,
          operator: 'Exists',
          effect: 'NoExecute',
          tolerationSeconds: 300,
        })),
        topologySpreadConstraints: [
          {
            maxSkew: 1,
            topologyKey: 'topology.kubernetes.io/zone',
            whenUnsatisfiable: 'ScheduleAnyway',
            labelSelector: { matchLabels: { app } },
          },
        ],
        volumes: [{ name: `kube-api-access-${index}`, projected: { sources: [] } }],
      },
      status: {
        phase: 'Running',
        podIP: `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`,
        startTime: time,
        conditions: ['Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map(condition),
        containerStatuses: [
          { name: 'app', ready: true, restartCount: 0, containerID: `containerd://${'a'.repeat(64)}` },
        ],
      },
    }),
  ) as Pod;
}

/** Heap in MiB that holds on to what `keep` makes of so many pods. */
function heapOf(pods: number, keep: (pod: Pod) => Pod, collect: () => void): number {
  collect();
  const before = process.memoryUsage().heapUsed;
  const held = Array.from({ length: pods }, (_, index) => keep(sentPod(index)));
  collect();
  const after = process.memoryUsage().heapUsed;
  return held.length === pods ? (after - before) / MIB : Number.NaN;
}

/** Heap in MiB of the pods of a large cluster. */
export function measureKeptPods(): Record<string, number> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const pods = NODES * PODS_EACH;
  return {
    'pods as they are kept': heapOf(pods, keptPod, collect),
    // A thirtieth of them, times thirty: all would not fit.
    'pods as they are sent': PODS_EACH * heapOf(pods / PODS_EACH, (pod) => pod, collect),
  };
}
