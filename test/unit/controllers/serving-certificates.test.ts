import '../../../operator/pki/reflect.ts';

import * as x509 from '@peculiar/x509';
import { describe, expect, it, vi } from 'vitest';
import type { ClusterConnection } from '../../../operator/clusters/cluster-connection.ts';
import { slimCertificateRequest } from '../../../operator/clusters/kept-objects.ts';
import { decideServingCertificates } from '../../../operator/controllers/shoot/machines/serving-certificates.ts';
import { silent } from '../../../operator/kube/log.ts';
import type { CertificateSigningRequest } from '../../../operator/kube/resources.ts';
import type { Machine } from '../../../providers/contract.ts';
import { partOf } from '../../kit/builders/partial.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const keys = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);

/** base64 of PEM: asks for a name so many times. */
async function requestOf(node: string, names: number): Promise<string> {
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: [{ O: ['system:nodes'] }, { CN: [`system:node:${node}`] }],
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.SubjectAlternativeNameExtension(Array.from({ length: names }, () => ({ type: 'dns', value: node }))),
    ],
  });
  return Buffer.from(request.toString('pem')).toString('base64');
}

const csr = (name: string, node: string, request: string): CertificateSigningRequest =>
  slimCertificateRequest({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name, resourceVersion: '1' },
    spec: {
      signerName: 'kubernetes.io/kubelet-serving',
      username: `system:node:${node}`,
      groups: ['system:nodes'],
      usages: ['digital signature', 'server auth'],
      request,
    },
  });

/** A cluster with these requests, and a look at them. */
function cluster(requests: CertificateSigningRequest[], machines: Machine[] = []) {
  const answers = new Map<string, { type: string; message: string }>();
  const connection = partOf<ClusterConnection>({
    owner: { namespace: 'mallory', cluster: 'demo' },
    csrs: { list: () => requests.filter(({ metadata }) => !answers.has(metadata.name)), absorb: () => {} },
    client: {
      mergePatch: async (_resource: object, name: string, _namespace: undefined, { status }: any) => {
        answers.set(name, status.conditions[0]);
        return {};
      },
    },
  });
  const deps = { log: silent, now: () => new Date() };
  const look = (listMachines = async () => machines) =>
    decideServingCertificates(connection, listMachines, deps, AbortSignal.timeout(60_000));
  return { answers, look };
}

/** Longest time for which nobody else could do anything while something ran, in ms. */
async function longestStall(run: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let last = performance.now();
  let isOver = false;
  const ticks = (async () => {
    while (!isOver) {
      await new Promise((resolve) => setImmediate(resolve));
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
    }
  })();
  await run();
  isOver = true;
  await ticks;
  return longest;
}

describe('decideServingCertificates', () => {
  it('denies 300 requests of 3,000 names each without a stall, with a short reason', async () => {
    const huge = await requestOf('node-9', 3_000);
    const { answers, look } = cluster(Array.from({ length: 300 }, (_, index) => csr(`c${index}`, 'node-9', huge)));
    const stall = await longestStall(look);
    expect(answers.size).toBe(300);
    expect(answers.get('c0')).toMatchObject({ type: 'Denied' });
    expect(answers.get('c0')!.message.length).toBeLessThan(200);
    // To parse all of them in one go takes a minute.
    expect(stall).toBeLessThan(1_000);
  });

  it('parses a waiting request once, however often it is judged', async () => {
    const parse = vi.spyOn(x509.Pkcs10CertificateRequest.prototype, 'extensions', 'get');
    const request = await requestOf('node-9', 100);
    const { look } = cluster(Array.from({ length: 20 }, (_, index) => csr(`c${index}`, 'node-9', request)));
    expect(await look()).toBe(true);
    const parsed = parse.mock.calls.length;
    for (let again = 0; again < 10; again++) expect(await look()).toBe(true);
    expect(parse.mock.calls.length).toBe(parsed);
    parse.mockRestore();
  });

  it("approves a kubelet's request once its machine is known", async () => {
    const machines: Machine[] = [];
    const { answers, look } = cluster([csr('own', 'node-1', await requestOf('node-1', 1))], machines);
    expect(await look()).toBe(true);
    machines.push({ nodeName: 'node-1', address: '10.0.0.5' } as Machine);
    expect(await look()).toBe(false);
    expect(answers.get('own')?.type).toBe('Approved');
  });

  it('lists no machines for an open request of another signer', async () => {
    const foreign = csr('foreign', 'node-1', await requestOf('node-1', 1));
    foreign.spec.signerName = 'example.com/own';
    const machines = vi.fn(async () => []);
    expect(await cluster([foreign]).look(machines)).toBe(false);
    expect(machines).not.toHaveBeenCalled();
  });
});
