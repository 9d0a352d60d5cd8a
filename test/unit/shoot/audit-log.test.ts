import { dump } from 'js-yaml';
import { expect, it } from 'vitest';
import type { KubeObject } from '../../../operator/api/meta.ts';
import { unactedSeedFields } from '../../../operator/api/seed.ts';
import { controlPlaneValues } from '../../../operator/controllers/shoot/control-plane-values.ts';
import { decodeSecret } from '../../../operator/kube/resources.ts';
import { kubeAPIServer } from '../../../operator/shoot/kube-apiserver.ts';
import { buildSeed, buildShoot } from '../../kit/builders/objects.ts';
import { controlPlane, pkiOf } from './values.ts';

const values = controlPlane();
const pki = await pkiOf(values);
const partsOf = (objects: KubeObject[]) => {
  const deployment = objects.find(({ kind }) => kind === 'Deployment')!;
  const secret = objects.find(({ kind }) => kind === 'Secret')!;
  const args: string[] = deployment.spec.template.spec.containers[0].args;
  return { audit: args.filter((arg) => arg.startsWith('--audit')), files: decodeSecret(secret.data) };
};

it('the audit log goes to standard output where a seed enables it, with metadata and without bodies', async () => {
  const { audit, files } = partsOf(kubeAPIServer({ ...values, auditLog: true }, pki));
  expect(audit).toEqual(['--audit-policy-file=/etc/kubernetes/audit-policy.json', '--audit-log-path=-']);
  const policy = JSON.parse(files['audit-policy.json']!);
  expect(new Set(policy.rules.map(({ level }: { level: string }) => level))).toEqual(new Set(['None', 'Metadata']));
  await expect(dump(policy)).toMatchFileSnapshot('golden/audit-policy.yaml');
});

it('the audit log is absent where it is not enabled', () => {
  const { audit, files } = partsOf(kubeAPIServer(values, pki));
  expect([audit, files['audit-policy.json']]).toEqual([[], undefined]);
});

it.each([
  [undefined, undefined],
  ['None', undefined],
  ['Metadata', true],
] as const)('is asked for by the seed: %s', (level, auditLog) => {
  const shoot = buildShoot({ metadata: { name: 'demo', namespace: 'shop' }, spec: { provider: {} } });
  const spec = { settings: { scheduling: { visible: true }, ...(level && { auditLog: { level } }) } };
  const seed = buildSeed({ metadata: { name: 'here' }, spec });
  expect(controlPlaneValues(shoot, undefined, seed, '1.36.3').auditLog).toBe(auditLog);
  expect(unactedSeedFields(seed)).toEqual([]);
});
