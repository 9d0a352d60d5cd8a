import { describe, expect, it } from 'vitest';
import { fitPod } from '../../../operator/burst/fit/pod.ts';
import { keptPod } from '../../../operator/clusters/kept-pod.ts';
import { podRequests } from '../../../operator/kube/pod-requests.ts';
import type { Pod } from '../../../operator/kube/resources.ts';
import { sentPod } from '../../bench/kept-pods.ts';
import { buildPod } from '../../kit/builders/objects.ts';

const term = { labelSelector: { matchLabels: { app: 'a' } }, topologyKey: 'kubernetes.io/hostname' };
const scheduling = {
  nodeSelector: { disk: 'ssd' },
  affinity: {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } },
    podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] },
    podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] },
  },
  tolerations: [{ key: 'dedicated', operator: 'Exists' }],
  topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }],
  priority: 1000,
  preemptionPolicy: 'Never',
  schedulerName: 'default-scheduler',
  schedulingGates: [{ name: 'wait.example/quota' }],
  resourceClaims: [{ name: 'gpu' }],
  runtimeClassName: 'kata',
  hostUsers: false,
  schedulingGroup: { podGroupName: 'g' },
  overhead: { cpu: '250m' },
};
const pod = (spec: object, more: object = {}): Pod =>
  buildPod({
    metadata: { name: 'p', namespace: 'n', uid: 'u', resourceVersion: '1', creationTimestamp: '2026-11-22T12:00:00Z' },
    spec: { containers: [], ...spec },
    ...more,
  });

describe('a pod in the cache', () => {
  it('keeps all scheduling fields', () => {
    const kept = keptPod(pod(scheduling));
    expect(kept.spec).toMatchObject(scheduling);
    expect(kept.metadata.creationTimestamp).toBe('2026-11-22T12:00:00Z');
  });

  it("keeps its containers' requests and host ports", () => {
    const requests = { cpu: '1', memory: '1Gi', 'nvidia.com/gpu': '1' };
    const sent = pod({
      containers: [
        { name: 'app', image: 'i', resources: { requests }, ports: [{ containerPort: 80 }, { hostPort: 8080 }] },
      ],
      initContainers: [{ name: 'proxy', restartPolicy: 'Always', resources: { requests: { cpu: '500m' } } }],
    });
    expect(podRequests(keptPod(sent))).toEqual(podRequests(sent));
    expect(keptPod(sent).spec.containers).toEqual([
      { name: 'app', resources: { requests }, ports: [{ hostPort: 8080 }] },
    ]);
  });

  it('keeps the claim names of its volumes, and no other volume', () => {
    const volumes = [
      { name: 'data', persistentVolumeClaim: { claimName: 'data-0' } },
      { name: 'scratch', ephemeral: { volumeClaimTemplate: { spec: { resources: {} } } } },
      { name: 'token', projected: { sources: [] } },
    ];
    expect(keptPod(pod({ volumes })).spec.volumes).toEqual([
      { name: 'data', persistentVolumeClaim: { claimName: 'data-0' } },
      { name: 'scratch', ephemeral: {} },
    ]);
  });

  it('keeps the names of disks mounted without a claim, and nothing of them', () => {
    const volumes = [{ name: 'disk', gcePersistentDisk: { pdName: 'd', fsType: 'ext4' } }];
    expect(keptPod(pod({ volumes })).spec.volumes).toEqual([{ name: 'disk', gcePersistentDisk: {} }]);
  });

  it('keeps held resources during a resize, and none otherwise', () => {
    const status = (name: string, cpu: string) => ({
      name,
      image: 'i',
      ready: true,
      restartCount: 0,
      resources: { requests: { cpu }, limits: { cpu: '9' } },
      allocatedResources: { cpu },
    });
    const requests = { cpu: '1' };
    const kept = keptPod(
      pod(
        { containers: ['a', 'b'].map((name) => ({ name, resources: { requests } })) },
        { status: { phase: 'Running', containerStatuses: [status('a', '2'), status('b', '1')] } },
      ),
    );
    expect(kept.status?.containerStatuses).toEqual([
      { name: 'a', resources: { requests: { cpu: '2' } }, allocatedResources: { cpu: '2' } },
    ]);
    expect(fitPod(kept).requests.cpu).toBe(3000);
  });

  it('keeps why and since when it is unschedulable, and eviction annotations', () => {
    const since = '2026-11-22T12:01:00Z';
    const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', lastTransitionTime: since };
    const kept = keptPod(
      pod(
        {},
        {
          metadata: { name: 'p', annotations: { 'karpenter.sh/do-not-disrupt': 'true', other: 'x' } },
          status: { phase: 'Pending', conditions: [{ ...condition, message: '0/3 nodes are available' }] },
        },
      ),
    );
    expect(kept.status?.conditions).toEqual([condition]);
    expect(kept.metadata.annotations).toEqual({ 'karpenter.sh/do-not-disrupt': 'true' });
  });

  it('shares values with pods of one template on any node', () => {
    const [first, second] = [keptPod(sentPod(0)), keptPod(sentPod(500))];
    expect(first.spec.nodeName).not.toBe(second.spec.nodeName);
    for (const part of ['containers', 'tolerations', 'topologySpreadConstraints'] as const)
      expect(first.spec[part]).toBe(second.spec[part]);
    expect(first.metadata.labels).toBe(second.metadata.labels);
    expect(first.status).toBe(second.status);
    expect(keptPod(sentPod(1)).spec.containers).toBe(first.spec.containers);
  });

  it('shares values with pods of its DaemonSet, each bound to its own node', () => {
    const daemon = (node: string) =>
      pod(
        {
          affinity: {
            nodeAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: {
                nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] }],
              },
            },
          },
        },
        { metadata: { name: node, ownerReferences: [{ kind: 'DaemonSet', name: 'agent' }] } },
      );
    expect(keptPod(daemon('a')).spec.affinity).toBeUndefined();
  });
});
