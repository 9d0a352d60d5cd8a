import '../../../operator/pki/reflect.ts';

import * as x509 from '@peculiar/x509';
import { expect, it } from 'vitest';
import { approveServingCSR, type isServingRequest } from '../../../operator/shoot/kubelet-csr.ts';

type ServingCSR = Parameters<typeof isServingRequest>[0];

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const keys = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);

interface Wish {
  commonName?: string;
  organizations?: string[];
  names?: x509.JsonGeneralNames;
  spec?: Partial<ServingCSR['spec']>;
}

async function csr(wish: Wish = {}): Promise<ServingCSR> {
  const names = wish.names ?? [
    { type: 'dns', value: 'node-1' },
    { type: 'ip', value: '10.0.0.5' },
  ];
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: [
      ...(wish.organizations ?? ['system:nodes']).map((name) => ({ O: [name] })),
      { CN: [wish.commonName ?? 'system:node:node-1'] },
    ],
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : [],
  });
  return {
    spec: {
      signerName: 'kubernetes.io/kubelet-serving',
      username: 'system:node:node-1',
      groups: ['system:nodes', 'system:authenticated'],
      usages: ['digital signature', 'server auth'],
      request: Buffer.from(request.toString('pem')).toString('base64'),
      ...wish.spec,
    },
  };
}

const MACHINES = [
  { nodeName: 'node-1', addresses: ['10.0.0.5', 'fd00::5'] },
  { nodeName: 'node-2', addresses: ['10.0.0.6'] },
];

it.each<[string, Wish, string]>([
  ['the node itself', {}, 'approve'],
  ['with an RSA key', { spec: { usages: ['key encipherment', 'digital signature', 'server auth'] } }, 'approve'],
  ['with a differently written address', { names: [{ type: 'ip', value: 'fd00:0::5' }] }, 'approve'],
  ['another signer', { spec: { signerName: 'kubernetes.io/kube-apiserver-client-kubelet' } }, 'ignore'],
  ['a person', { spec: { username: 'eve', groups: ['system:nodes'] } }, 'deny eve is not a node'],
  ['a node outside of the group', { spec: { groups: [] } }, 'deny system:node:node-1 is not a node'],
  [
    'a client certificate',
    { spec: { usages: ['digital signature', 'client auth'] } },
    'deny usages digital signature, client auth are not those of a serving certificate',
  ],
  [
    'one usage more',
    { spec: { usages: ['digital signature', 'server auth', 'client auth'] } },
    'deny usages digital signature, server auth, client auth are not those of a serving certificate',
  ],
  ['nonsense', { spec: { request: 'eHg=' } }, 'deny the request is not a PKCS#10 certificate request'],
  [
    'the name of another node as subject',
    { commonName: 'system:node:node-2' },
    'deny system:node:node-1 asks for a certificate of system:node:node-2',
  ],
  [
    'one group more',
    { organizations: ['system:nodes', 'system:masters'] },
    'deny organization must be system:nodes alone',
  ],
  ['the name of another node', { names: [{ type: 'dns', value: 'node-2' }] }, 'deny node-1 asks for the name node-2'],
  [
    'the address of another node',
    { names: [{ type: 'ip', value: '10.0.0.6' }] },
    'deny node-1 asks for the address 10.0.0.6, which is not its own',
  ],
  [
    'a URL',
    {
      names: [
        { type: 'dns', value: 'node-1' },
        { type: 'url', value: 'https://x' },
      ],
    },
    'deny alternative names of type url are not allowed',
  ],
  ['no name', { names: [] }, 'deny the request has no alternative name'],
  [
    'an unknown machine',
    {
      commonName: 'system:node:node-9',
      names: [{ type: 'dns', value: 'node-9' }],
      spec: { username: 'system:node:node-9' },
    },
    'wait no machine named node-9 is known',
  ],
])('%s', async (_, wish, expected) => {
  const result = approveServingCSR(await csr(wish), MACHINES);
  expect('reason' in result ? `${result.decision} ${result.reason}` : result.decision).toBe(expected);
});

it('approveServingCSR waits for a machine without an address', async () => {
  const result = approveServingCSR(await csr(), [{ nodeName: 'node-1', addresses: [] }]);
  expect(result.decision).toBe('wait');
});
