import { describe, expect, it } from 'vitest';
import { ANNOTATIONS } from '../../../operator/api/group.ts';
import type { KubeObject } from '../../../operator/api/meta.ts';
import { compareReleases, planCrds } from '../../../operator/chart/plan-crds.ts';

const crd = (versions: string[], more: { release?: string; stored?: string[] } = {}): KubeObject => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: {
    name: 'things.example.org',
    resourceVersion: '7',
    annotations: { theirs: 'kept', ...(more.release && { [ANNOTATIONS.release]: more.release }) },
  },
  spec: { versions: versions.map((name) => ({ name })) },
  status: { storedVersions: more.stored ?? versions.slice(0, 1) },
});
const plan = (there: KubeObject | undefined, wanted: KubeObject, release = '1.2.0') =>
  planCrds(new Map(there ? [[there.metadata.name, there]] : []), [wanted], release)[0]!;

describe('CRDs of a release', () => {
  it('are made where there are none, and bear the release', () => {
    const step = plan(undefined, crd(['v1']));
    expect(step).toMatchObject({
      do: 'create',
      object: { metadata: { annotations: { [ANNOTATIONS.release]: '1.2.0' } } },
    });
  });

  it('take the place of those of an older one, whole, and leave the annotations of others', () => {
    const there = crd(['v1'], { release: '1.1.9' });
    there.spec.versions[0].schema = 'with a field that is gone';
    const step = plan(there, crd(['v1', 'v2']));
    expect(step).toMatchObject({
      do: 'replace',
      object: {
        metadata: { resourceVersion: '7', annotations: { theirs: 'kept', [ANNOTATIONS.release]: '1.2.0' } },
        spec: { versions: [{ name: 'v1' }, { name: 'v2' }] },
      },
    });
    expect(JSON.stringify(step)).not.toContain('gone');
  });

  it('take the place of those that Helm made of the chart, which bear no release', () => {
    expect(plan(crd(['v1']), crd(['v1']))).toMatchObject({ do: 'replace' });
  });

  it('stay as they are after a rollback: a newer release has written them', () => {
    const step = plan(crd(['v1', 'v2'], { release: '1.3.0', stored: ['v2'] }), crd(['v1']));
    expect(step).toEqual({
      do: 'keep',
      name: 'things.example.org',
      because: 'release 1.3.0 wrote it, which is newer than 1.2.0',
    });
  });

  it('are refused where objects are stored in a version that they lack', () => {
    const step = plan(crd(['v1alpha1', 'v1'], { release: '1.1.0', stored: ['v1alpha1', 'v1'] }), crd(['v1']));
    expect(step).toMatchObject({ do: 'refuse', problem: expect.stringContaining('objects are stored as v1alpha1') });
  });
});

it('compares releases by their numbers', () => {
  expect(compareReleases('0.10.0', '0.9.9')).toBeGreaterThan(0);
  expect(compareReleases('1.2.0-rc.1', '1.2.0')).toBe(0);
  expect(compareReleases('1.2.3', '2.0.0')).toBeLessThan(0);
});
