import { expect, it } from 'vitest';
import { suggestFields } from '../../../operator/cli/field-suggestion.ts';

const failed = (errors: string) =>
  `failed to create typed patch object (default/a; multi-cluster.demo.io/v1, Kind=WorkerCluster): ${errors}`;

it.each([
  ['of the spec', '.spec.controlPlaneNode: field not declared in schema', 'did you mean "controlPlaneNodes"?'],
  ['of a pool', '.spec.pools[name="a"].machinType: field not declared in schema', 'did you mean "machineType"?'],
  [
    'beside another error',
    'errors: .spec.trigger.pendingFor: expected string, got &value.valueUnstructured{Value:30} .spec.regoin: field not declared in schema',
    'did you mean "region"?',
  ],
  ['that is near to none of many', '.spec.zzzzzzzz: field not declared in schema', undefined],
  [
    'that is near to none of few',
    '.spec.kubernetes.zzzzzzzz: field not declared in schema',
    expect.stringMatching(/^spec\.kubernetes has: .*\bversion\b/),
  ],
])('suggestFields names the field that was meant, for a slip %s', async (_what, errors, meant) => {
  expect(await suggestFields('WorkerCluster', failed(errors))).toEqual(meant);
});

it('suggestFields returns undefined for a kind of another project', async () => {
  expect(await suggestFields('Deployment', failed('.spec.replcas: field not declared in schema'))).toBeUndefined();
});
