import { describe, expect, it, test } from 'vitest';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { asStated, DEFAULTER } from '../../../operator/controllers/stated-size.ts';
import { buildWorkerCluster } from '../../kit/builders/objects.ts';

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';
const entry = (manager: string, ...fields: string[]) => ({
  manager,
  operation: 'Update',
  fieldsV1: { 'f:spec': Object.fromEntries(fields.map((field) => [`f:${field}`, {}])) },
});
const cluster = (
  managedFields: object[] | undefined,
  status: object | undefined,
  lastApplied?: string,
): WorkerCluster =>
  buildWorkerCluster({
    metadata: {
      name: 'a',
      ...(managedFields && { managedFields }),
      ...(lastApplied && { annotations: { [LAST_APPLIED]: lastApplied } }),
    },
    spec: { cloudProvider: 'aws', pools: [{ name: 'a', minimum: 1, maximum: 9 }], dataPlaneNodes: 2 },
    status,
  });
const filledIn = { defaultedNodes: [2] };
const others = [entry('me', 'pools')];

test.each<[string, WorkerCluster]>([
  ['nobody owns', cluster(others, filledIn)],
  [
    'only the operator owns: it was stopped before it let go',
    cluster([...others, entry(DEFAULTER, 'dataPlaneNodes')], filledIn),
  ],
  ['is followed by another one, which is not yet written', cluster(others, { defaultedNodes: [2, 3] })],
  ['a manifest does not say', cluster(others, filledIn, '{"spec":{"cloudProvider":"aws"}}')],
])('a number that %s is nobody’s wish', (_what, given) => {
  const { spec, defaulted } = asStated(given);
  expect(spec.dataPlaneNodes).toBeUndefined();
  expect(defaulted?.nodes).toBe(2);
});

test.each<[string, WorkerCluster]>([
  ['somebody owns', cluster([entry('kubectl', 'pools', 'dataPlaneNodes')], filledIn)],
  [
    'somebody owns beside the operator',
    cluster([entry('me', 'dataPlaneNodes'), entry(DEFAULTER, 'dataPlaneNodes')], filledIn),
  ],
  ['the operator never filled in, though nobody owns it any more', cluster(others, {})],
  ['a new object has', cluster(others, undefined)],
  ['is another than the operator filled in, though nobody owns it', cluster(others, { defaultedNodes: [3] })],
  ['nobody can tell the owner of', cluster(undefined, filledIn)],
  ['a manifest says', cluster(others, filledIn, '{"spec":{"dataPlaneNodes":2}}')],
  ['a manifest says that cannot be read', cluster(others, filledIn, '{')],
])('a number that %s is a person’s', (_what, given) => {
  expect(asStated(given).spec.dataPlaneNodes).toBe(2);
  expect(asStated(given).defaulted).toBeUndefined();
});

describe("a number of nodes with the operator's annotation", () => {
  const MARK = 'multi-cluster.demo.io/filled-in-nodes';
  const marked = (mark: string, owners: object[], manifest?: object): WorkerCluster => {
    const made = cluster(owners, undefined, manifest && JSON.stringify(manifest));
    return { ...made, metadata: { ...made.metadata, annotations: { ...made.metadata.annotations, [MARK]: mark } } };
  };
  const both = (manager: string) => ({
    ...entry(manager, 'dataPlaneNodes'),
    fieldsV1: { 'f:spec': { 'f:dataPlaneNodes': {} }, 'f:metadata': { 'f:annotations': { [`f:${MARK}`]: {} } } },
  });
  const manifestOf = (nodes: number, mark: string) => ({
    metadata: { annotations: { [MARK]: mark } },
    spec: { dataPlaneNodes: nodes },
  });

  test.each<[string, WorkerCluster]>([
    ['nobody owns', marked('2', others)],
    ['came back with a backup, which has no status', marked('2', [both('velero')])],
    ['an edited export says again', marked('2', others, manifestOf(2, '2'))],
    ['an older export says, and the operator has filled in another since', marked('2', others, manifestOf(7, '7'))],
  ])('is nobody’s wish where it %s', (_what, given) => {
    expect(asStated(given).spec.dataPlaneNodes).toBeUndefined();
    expect(asStated(given).defaulted).toMatchObject({ nodes: 2, marked: true });
  });

  test.each<[string, WorkerCluster]>([
    ['is another than the annotation says', marked('5', others)],
    ['an autoscaler has written to be the same', marked('2', [entry('horizontal-pod-autoscaler', 'dataPlaneNodes')])],
    ['an export was edited to say', marked('5', [both('me')], manifestOf(2, '5'))],
    ['is of a cluster without pools', { ...marked('2', [both('me')]), spec: { dataPlaneNodes: 2 } } as WorkerCluster],
  ])('is a person’s where it %s', (_what, given) => {
    expect(asStated(given).spec.dataPlaneNodes).toBe(2);
  });

  it('loses the annotation once a person writes another, unless it is applied repeatedly', () => {
    expect(asStated(marked('5', others)).hasOldMark).toBe(true);
    expect(asStated(marked('5', [both('velero')])).hasOldMark).toBe(true);
    expect(asStated(marked('5', [{ ...both('gitops'), operation: 'Apply' }])).hasOldMark).toBeUndefined();
    expect(asStated(marked('5', others, manifestOf(2, '5'))).hasOldMark).toBeUndefined();
  });
});

it('written by a person has its author, where the API server reports one', () => {
  const writers = [entry('kube-controller-manager', 'dataPlaneNodes'), entry('kubectl', 'dataPlaneNodes')];
  expect(asStated(cluster(writers, undefined)).statedBy).toBe('kube-controller-manager, kubectl');
  expect(asStated(cluster([entry(DEFAULTER, 'dataPlaneNodes')], {})).statedBy).toBeUndefined();
});

it('in an invalid WorkerCluster is unchanged', () => {
  const odd = buildWorkerCluster({ metadata: { name: 'a', managedFields: [{}] }, status: filledIn });
  expect(asStated(odd)).toBe(odd);
});
