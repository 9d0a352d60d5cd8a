import { describe, expect, it } from 'vitest';
import { ANNOTATIONS } from '../../../operator/api/group.ts';
import type { KubeObject } from '../../../operator/api/meta.ts';
import { planCrds } from '../../../operator/chart/plan-crds.ts';

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

describe('planCrds', () => {
  it("creates missing CRDs with the release's annotation", () => {
    const step = plan(undefined, crd(['v1']));
    expect(step).toMatchObject({
      do: 'create',
      object: { metadata: { annotations: { [ANNOTATIONS.release]: '1.2.0' } } },
    });
  });

  it('replaces CRDs of an older release completely, and keeps foreign annotations', () => {
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

  it('replaces CRDs that Helm created from the chart, without a release annotation', () => {
    expect(plan(crd(['v1']), crd(['v1']))).toMatchObject({ do: 'replace' });
  });

  it('leaves CRDs of a newer release unchanged after a rollback', () => {
    const step = plan(crd(['v1', 'v2'], { release: '1.3.0', stored: ['v2'] }), crd(['v1']));
    expect(step).toEqual({
      do: 'keep',
      name: 'things.example.org',
      because: 'release 1.3.0 wrote it, which is newer than 1.2.0',
    });
  });

  it('refuses CRDs that lack a version in which objects are stored', () => {
    const step = plan(crd(['v1alpha1', 'v1'], { release: '1.1.0', stored: ['v1alpha1', 'v1'] }), crd(['v1']));
    expect(step).toMatchObject({ do: 'refuse', problem: expect.stringContaining('objects are stored as v1alpha1') });
  });
});

it.each([
  ['0.10.0', '0.9.9', 'keep'],
  ['1.2.0-rc.1', '1.2.0', 'replace'],
  ['1.2.3', '2.0.0', 'replace'],
])('a CRD that %s wrote: release %s will %s it, by the numbers of both', (writer, release, what) => {
  expect(plan(crd(['v1'], { release: writer }), crd(['v1']), release).do).toBe(what);
});
