import { X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Node, Service } from '../../../operator/kube/resources.ts';
import { exposedEndpointOf } from '../../../operator/shoot/exposure.ts';
import { adminKubeconfig, bootstrapKubeconfig, operatorKubeconfig } from '../../../operator/shoot/kubeconfigs.ts';
import { pkiParameters, planShootPKI } from '../../../operator/shoot/pki.ts';
import type { ControlPlane } from '../../../operator/shoot/values.ts';
import { buildNode } from '../../kit/builders/objects.ts';
import { controlPlane, NOW, pkiOf } from './values.ts';

const service = (type: string, more: Partial<Service> = {}): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'kube-apiserver' },
  spec: { type, ports: [{ port: 6443, ...(type !== 'ClusterIP' && { nodePort: 31443 }) }] },
  ...more,
});

const node = (name: string, born: string, addresses: Record<string, string>, ready = 'True') =>
  buildNode({
    metadata: { name, creationTimestamp: `2026-01-0${born}T00:00:00Z` },
    status: {
      conditions: [{ type: 'Ready', status: ready, lastTransitionTime: '', reason: '', message: '' }],
      addresses: Object.entries(addresses).map(([type, address]) => ({ type, address })),
    },
  });

const ingress = (...addresses: object[]) => ({ status: { loadBalancer: { ingress: addresses } } });

describe('the endpoint of a hosted API server', () => {
  const old = node('old', '1', { InternalIP: '172.18.0.2' });
  const young = node('a-young', '2', { InternalIP: '172.18.0.3', ExternalIP: '203.0.113.3' });
  it.each<[string, Service, Node[], ReturnType<typeof exposedEndpointOf>]>([
    ['is the oldest node', service('NodePort'), [young, old], { host: '172.18.0.2', port: 31443 }],
    ['by its external address', service('NodePort'), [young], { host: '203.0.113.3', port: 31443 }],
    [
      'if it is Ready',
      service('NodePort'),
      [node('old', '1', { InternalIP: '1.1.1.1' }, 'False'), young],
      { host: '203.0.113.3', port: 31443 },
    ],
    [
      'if it has an address',
      service('NodePort'),
      [node('old', '1', { Hostname: 'old' }), young],
      { host: '203.0.113.3', port: 31443 },
    ],
    ['is not there without nodes', service('NodePort'), [], undefined],
    [
      'is the address of a load balancer',
      service('LoadBalancer', ingress({ ip: '198.51.100.7' })),
      [],
      { host: '198.51.100.7', port: 6443 },
    ],
    [
      'or its name',
      service('LoadBalancer', ingress({ hostname: 'lb.example' })),
      [],
      { host: 'lb.example', port: 6443 },
    ],
    ['is not there before it has one', service('LoadBalancer'), [old], undefined],
  ])('%s', (_, made, nodes, expected) => expect(exposedEndpointOf(made, nodes)).toEqual(expected));

  it("is the seed's configured address for node ports", () => {
    expect(exposedEndpointOf(service('NodePort'), [old], '127.0.0.1')).toEqual({ host: '127.0.0.1', port: 31443 });
  });
});

describe.each([
  ['an address', { host: '203.0.113.3', port: 31443 }, 'https://203.0.113.3:31443', 'IP Address:203.0.113.3'],
  [
    'an address of IPv6',
    { host: '2001:db8::3', port: 31443 },
    'https://[2001:db8::3]:31443',
    'IP Address:2001:DB8:0:0:0:0:0:3',
  ],
  ['a name', { host: 'lb.example', port: 6443 }, 'https://lb.example:6443', 'DNS:lb.example'],
])('an endpoint that is %s', (_, endpoint, url, alternativeName) => {
  const values: ControlPlane = { ...controlPlane(), exposure: 'NodePort', endpoint };

  it("is in the API server's certificate, and its change renews no other certificate", async () => {
    const pki = await pkiOf(values);
    expect(new X509Certificate(pki['kube-apiserver.crt']!).subjectAltName).toContain(alternativeName);
    expect(planShootPKI(pki, pkiParameters(values), NOW).issue).toEqual([]);
    const moved = pkiParameters({ ...values, endpoint: { host: '203.0.113.4', port: 1 } });
    expect(planShootPKI(pki, moved, NOW).issue).toEqual([{ id: 'kube-apiserver', reason: 'changed' }]);
  });

  it('is used by people and the operator, not by machines in the seed', async () => {
    const pki = await pkiOf(values);
    const pair = { cert: pki['admin.crt']!, key: pki['admin.key']! };
    expect(adminKubeconfig(values, pki)).toContain(`server: ${url}`);
    expect(operatorKubeconfig(values, pki, pair)).toContain(`server: ${url}`);
    expect(bootstrapKubeconfig(values, pki, 'a.b')).toContain('server: https://10.1.0.10:6443');
  });
});
