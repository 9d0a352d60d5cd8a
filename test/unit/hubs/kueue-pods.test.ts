import { describe, expect, it } from 'vitest';
import { type PodSet, templateOf } from '../../../operator/hubs/kueue-pods.ts';

const workload = {
  apiVersion: 'kueue.x-k8s.io/v1beta2',
  kind: 'Workload',
  metadata: {
    name: 'job-train-1a2b3',
    namespace: 'shop',
    uid: 'of-workload',
    ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: 'train', uid: 'of-job', controller: true }],
  },
};
const container = { name: 'main', image: 'train', env: [], resources: { requests: { cpu: '1', memory: '1Gi' } } };
const podSet = (spec: object = {}, more: object = {}, labels: Record<string, string> = {}): PodSet => ({
  template: { metadata: { labels }, spec: { containers: [container], ...spec } },
  ...more,
});
const made = (...said: Parameters<typeof podSet>) => templateOf(workload, podSet(...said), { cpu: '1', memory: '1Gi' });
const specOf = (...said: Parameters<typeof podSet>) => {
  const answer = made(...said);
  return 'template' in answer ? answer.template.spec : answer.problem;
};
const hard = (terms: object[]) => ({ requiredDuringSchedulingIgnoredDuringExecution: terms });
const apart = { labelSelector: { matchLabels: { app: 'web' } }, topologyKey: 'zone' };
const spread = { topologyKey: 'zone', maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule', labelSelector: {} };

describe('the pods of a Workload', () => {
  it('are identified by their scheduling fields alone', () => {
    const { resources } = container;
    const rules = {
      nodeSelector: { disk: 'ssd' },
      tolerations: [{ key: 'gpu', operator: 'Exists' }],
      overhead: { cpu: '100m' },
    };
    const preferred = { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, podAffinityTerm: apart }] };
    const spec = specOf({
      ...rules,
      initContainers: [{ name: 'proxy', image: 'proxy', restartPolicy: 'Always', resources }],
      affinity: { podAffinity: preferred, podAntiAffinity: { ...hard([apart]), ...preferred } },
      topologySpreadConstraints: [spread, { ...spread, whenUnsatisfiable: 'ScheduleAnyway' }],
      serviceAccountName: 'train',
      volumes: [{ name: 'scratch', emptyDir: {} }],
    });
    expect(spec).toEqual({
      ...rules,
      containers: [{ name: 'work', resources }],
      initContainers: [{ name: 'work', restartPolicy: 'Always', resources }],
      affinity: { podAntiAffinity: hard([apart]) },
      topologySpreadConstraints: [spread],
    });
  });

  it('have their host ports, and all ports with hostNetwork', () => {
    const ports = [{ containerPort: 80, hostPort: 8080, name: 'web' }, { containerPort: 9000 }];
    const onHost = { ...container, ports: [{ containerPort: 9000 }] };
    expect(specOf({ containers: [{ ...container, ports }] })).toMatchObject({
      containers: [{ ports: [{ hostPort: 8080 }] }],
    });
    expect(specOf({ hostNetwork: true, containers: [onHost] })).toMatchObject({
      containers: [{ ports: [{ hostPort: 9000 }] }],
    });
    expect(specOf({ containers: [onHost] })).not.toHaveProperty('containers.0.ports');
  });

  it('include requests that quota counts beyond the template, for example namespace defaults', () => {
    const answer = templateOf(workload, podSet({ overhead: { cpu: '50m' } }), {
      cpu: '1250m',
      memory: '2Gi',
      gpu: '1',
    });
    expect(answer).toMatchObject({
      template: { spec: { overhead: { cpu: '250m', memory: String(2 ** 30), 'nvidia.com/gpu': '1' } } },
    });
  });

  it('lose labels that name the job, unless a rule of theirs reads them', () => {
    const labels = { app: 'web', 'batch.kubernetes.io/job-name': 'train', uid: 'of-job' };
    expect(made({}, {}, labels)).toMatchObject({ template: { labels: { app: 'web' } } });
    expect(made({}, {}, labels)).not.toHaveProperty(['template', 'labels', 'uid']);
    expect(made({ topologySpreadConstraints: [spread] }, {}, labels)).toMatchObject({ template: { labels } });
  });

  it.each<[string, Parameters<typeof podSet>, RegExp]>([
    ['ask for devices', [{ resourceClaims: [{ name: 'one' }] }], /ResourceClaims/],
    ['have another scheduler', [{ schedulerName: 'volcano' }], /a scheduler other than default-scheduler/],
    ['use claims', [{ volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] }], /uses claims/],
    ['have claims made', [{ volumes: [{ name: 'data', ephemeral: {} }] }], /uses claims/],
    ['are held', [{ schedulingGates: [{ name: 'example.com/later' }] }], /scheduling gate example.com\/later/],
    ['are placed by Kueue', [{}, { topologyRequest: { required: 'rack' } }], /topology-aware scheduling/],
    [
      'select namespaces by label',
      [{ affinity: { podAntiAffinity: hard([{ ...apart, namespaceSelector: {} }]) } }],
      /labels of their namespaces/,
    ],
    [
      'have many rules',
      [{ affinity: { podAffinity: hard(Array(17).fill(apart)) } }],
      /17 rules about other pods, more than the 16/,
    ],
    ['are described at length', [{ nodeSelector: { a: 'x'.repeat(20_000) } }], /longer than 16384 characters/],
  ])('are not judged where they %s: nothing is bought for them', (_, said, why) =>
    expect(specOf(...said)).toMatch(why),
  );

  it("are judged with Kueue's own scheduling gate, or with a topology preference", () => {
    expect(specOf({ schedulingGates: [{ name: 'kueue.x-k8s.io/admission' }] })).not.toBeTypeOf('string');
    expect(specOf({}, { topologyRequest: { preferred: 'rack' } })).not.toBeTypeOf('string');
  });
});
