import { readFile } from 'node:fs/promises';
import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { type Hub, hubSpec } from '../../../operator/api/hub.ts';
import { INVENTORY, inventoryManifests } from '../../../operator/garden/daemon/inventory.ts';
import type { KubeObject, Resource } from '../../../operator/kube/resources.ts';

const PROFILES = 'clusterprofiles.multicluster.x-k8s.io';
const DECISIONS = 'placementdecisions.multicluster.x-k8s.io';

/** A garden in which these objects are. */
const garden = (...objects: KubeObject[]) => ({
  getOrUndefined: async <T extends KubeObject>({ kind }: Resource, name: string) =>
    objects.find((one) => one.kind === kind && one.metadata.name === name) as T | undefined,
});
const crd = (name: string) =>
  ({ apiVersion: 'v1', kind: 'CustomResourceDefinition', metadata: { name } }) as KubeObject;
const changed = (spec: object, metadata: object = {}): Hub => ({
  ...INVENTORY,
  metadata: { ...INVENTORY.metadata, ...metadata },
  spec: { ...INVENTORY.spec, ...spec },
});
const applied = async (had: boolean, ...objects: KubeObject[]) =>
  (await inventoryManifests(garden(...objects), had)).map(({ metadata }) => metadata.name);

describe('the inventory of a garden', () => {
  it.each<[string, boolean, KubeObject[], string[]]>([
    ['is made where it never was, with its kinds', false, [], [PROFILES, DECISIONS, 'inventory']],
    ['is made once', true, [INVENTORY, crd(PROFILES), crd(DECISIONS)], []],
    ['stays deleted, and so do its kinds', true, [], []],
    ['stays as somebody changed it', true, [changed({ allowedNamespaces: [] }), crd(PROFILES), crd(DECISIONS)], []],
    ['gets its kinds back while it is there', true, [INVENTORY, crd(DECISIONS)], [PROFILES]],
    ['takes kinds that are there as they are', false, [crd(PROFILES), crd(DECISIONS)], ['inventory']],
    ['writes over no Hub of that name', false, [changed({ type: 'ArgoCD' })], []],
    ['brings no kinds for a Hub of another cluster', false, [changed({ kubeconfigRef: { name: 'fleet' } })], []],
    ['brings none for a Hub that goes', true, [changed({}, { deletionTimestamp: '2026-11-22T12:00:00Z' })], []],
  ])('%s', async (_, had, objects, names) => {
    expect(await applied(had, ...objects)).toEqual(names);
  });

  it('is the documented example', async () => {
    const example = await readFile(new URL('../../../examples/hubs/clusterprofile.yaml', import.meta.url), 'utf8');
    expect(load(example)).toEqual(INVENTORY);
    expect(hubSpec.safeParse(INVENTORY.spec).error).toBeUndefined();
  });
});
