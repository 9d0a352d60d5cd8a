import { expect, it } from 'vitest';
import type { KubeObject } from '../../../operator/api/meta.ts';
import { IMAGES } from '../../../operator/garden/images/catalog.ts';
import {
  machineStorageClass,
  provisionerAccess,
  provisionerManifests,
} from '../../../operator/shoot/machine-volumes.ts';
import { local } from '../../../providers/local/index.ts';
import { PAUSE_IMAGE } from '../../../providers/local/machine-files.ts';
import { HOST_FOLDERS } from '../../../providers/local/machine-pod.ts';

const settings = local.machineVolumes!;
const objects = [...provisionerAccess(settings), provisionerManifests(settings)];
const ofKind = (kind: string) => objects.filter((object) => object.kind === kind);
const [{ data: files }] = ofKind('ConfigMap') as [KubeObject & { data: Record<string, string> }];
const IS_DEFAULT = 'storageclass.kubernetes.io/is-default-class';
const existing = (name: string, isDefault: boolean) => ({
  metadata: { name, annotations: { [IS_DEFAULT]: String(isDefault) } },
});

it("a claim without a class gets a volume on its pod's machine", () => {
  const [storageClass] = machineStorageClass([]);
  expect(storageClass).toMatchObject({
    metadata: { annotations: { [IS_DEFAULT]: 'true', defaultVolumeType: 'local' } },
    volumeBindingMode: 'WaitForFirstConsumer',
    reclaimPolicy: 'Delete',
  });
  const { args } = provisionerManifests(settings).spec.template.spec.containers[0];
  expect(args).toContain(`--provisioner-name=${storageClass!.provisioner}`);
});

it("a foreign default class stays the default, and people's changes to Coppice's class stay", () => {
  expect(machineStorageClass([existing('fast', true)])[0]?.metadata.annotations?.[IS_DEFAULT]).toBe('false');
  expect(machineStorageClass([existing('fast', false)])[0]?.metadata.annotations?.[IS_DEFAULT]).toBe('true');
  expect(machineStorageClass([existing('coppice-local', false)])).toEqual([]);
});

it('the volume provisioner may write volumes, Events, and pods of its namespace, return claims, and read no Secret', () => {
  const rulesOf = (kind: string) =>
    ofKind(kind).flatMap(({ rules }) => rules as { resources: string[]; verbs: string[] }[]);
  const may = (kind: string, verb: string) =>
    rulesOf(kind).flatMap(({ resources, verbs }) => (verbs.includes(verb) ? resources : []));
  expect(may('ClusterRole', 'create')).toEqual(['persistentvolumes', 'events']);
  expect(may('ClusterRole', 'delete')).toEqual(['persistentvolumes']);
  // Else a claim whose machine went before its volume was made would wait for that machine for ever.
  expect(may('ClusterRole', 'update')).toEqual(['persistentvolumeclaims']);
  expect(may('Role', 'create')).toEqual(['pods']);
  expect([...rulesOf('ClusterRole'), ...rulesOf('Role')].flatMap(({ resources }) => resources)).not.toContain(
    'secrets',
  );
  const [pod] = ofKind('Deployment').map(({ spec }) => spec.template.spec);
  expect(pod).toMatchObject({ securityContext: { runAsNonRoot: true } });
  expect(pod.containers[0].securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
});

it("the volume provisioner uses only images that a garden builds, and the machine's shell", () => {
  const helper = JSON.parse(files['helperPod.yaml']!).spec;
  expect(ofKind('Deployment')[0]!.spec.template.spec.containers[0].image).toBe(IMAGES['local-path-provisioner'].ref);
  expect(helper.containers[0].image).toBe(PAUSE_IMAGE);
  expect(helper.automountServiceAccountToken).toBe(false);
  const paths = helper.volumes.map(({ hostPath }: { hostPath: { path: string } }) => hostPath.path);
  expect(paths.filter((path: string) => !HOST_FOLDERS.includes(path))).toEqual([]);
  expect(helper.containers[0].volumeMounts.every(({ readOnly }: { readOnly: boolean }) => readOnly)).toBe(true);
});

it('machine volumes are where a machine keeps data across container restarts', () => {
  const { nodePathMap } = JSON.parse(files['config.json']!);
  expect(nodePathMap[0].paths[0]).toMatch(/^\/var\//);
});

it('changed files restart the volume provisioner, which reads them at startup', () => {
  const moved = provisionerManifests({ ...settings, folder: '/var/elsewhere' });
  expect(moved.spec.template.metadata).not.toEqual(provisionerManifests(settings).spec.template.metadata);
});
