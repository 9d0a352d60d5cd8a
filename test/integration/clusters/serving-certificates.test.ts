import '../../../operator/pki/reflect.ts';

import * as x509 from '@peculiar/x509';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ClusterConnection } from '../../../operator/clusters/cluster-connection.ts';
import { decideServingCertificates } from '../../../operator/controllers/shoot/machines/serving-certificates.ts';
import { silent } from '../../../operator/kube/log.ts';
import { type CertificateSigningRequest, CSRS } from '../../../operator/kube/resources.ts';
import type { Machine } from '../../../providers/contract.ts';
import { startApiserver, type TestApiserver } from '../../kit/apiserver.ts';

// One of its own: it answers all requests that there are, also those of other files.
let api: TestApiserver;
beforeAll(async () => {
  api = await startApiserver();
});
afterAll(() => api?.stop());

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

async function requestOf(address: string): Promise<string> {
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: [{ O: ['system:nodes'] }, { CN: ['system:node:node-1'] }],
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [new x509.SubjectAlternativeNameExtension([{ type: 'ip', value: address }])],
  });
  return Buffer.from(request.toString('pem')).toString('base64');
}

it("the approver approves a kubelet's request from a partial cache, and preserves the rest of it", async () => {
  const impersonate = { user: 'system:node:node-1', groups: ['system:nodes', 'system:masters'] };
  const kubelet = api.connect({ impersonate });
  const [own, foreign] = ['own', 'foreign'];
  for (const [name, address] of [
    [own, '10.0.0.5'],
    [foreign, '10.0.0.6'],
  ] as const) {
    const signerName = 'kubernetes.io/kubelet-serving';
    await kubelet.create<CertificateSigningRequest>({
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { name, labels: { of: 'somebody' }, annotations: { of: 'somebody' } },
      spec: { signerName, usages: ['digital signature', 'server auth'], request: await requestOf(address) },
    });
  }
  const client = api.connect();
  const connection = new ClusterConnection(
    client,
    { server: client.server, tenant: 'shop' },
    new Date(8.64e15),
    silent,
    () => {},
  );
  await connection.start(AbortSignal.timeout(20_000));
  const machines = [{ nodeName: 'node-1', address: '10.0.0.5' }] as Machine[];
  let asked = 0;
  const listMachines = async () => {
    asked++;
    return machines;
  };
  const deps = { log: silent, now: () => new Date() };
  const decide = () => decideServingCertificates(connection, listMachines, deps, AbortSignal.timeout(20_000));
  expect(await decide()).toBe(false);
  expect(asked).toBe(1);
  // Nothing is open any more, once the cache has heard of the answers.
  const asksAgain = async () => {
    const before = asked;
    await decide();
    return asked - before;
  };
  await expect.poll(asksAgain).toBe(0);
  for (const [name, type] of [
    [own, 'Approved'],
    [foreign, 'Denied'],
  ] as const) {
    const { metadata, spec, status } = await api.client.get<CertificateSigningRequest>(CSRS, name);
    expect(status?.conditions).toMatchObject([{ type, status: 'True' }]);
    expect([metadata.labels, metadata.annotations]).toEqual([{ of: 'somebody' }, { of: 'somebody' }]);
    expect(spec.request).not.toBe('');
    expect(connection.csrs.get(name)?.status?.conditions).toEqual([{ type, status: 'True' }]);
  }
  await connection.stop();
});
