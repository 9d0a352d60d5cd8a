import { expect, it } from 'vitest';
import { slimCertificateRequest, slimNode } from '../../../operator/clusters/kept-objects.ts';
import type { CertificateSigningRequest, Node } from '../../../operator/kube/resources.ts';
import { partOf } from '../../kit/builders/partial.ts';

it('slimNode keeps the fields of a Node that are read, without unbounded fields', () => {
  const kept = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: 'one',
      uid: 'u',
      resourceVersion: '7',
      labels: { zone: 'a' },
      annotations: {
        'multi-cluster.demo.io/draining': '2026-11-22T12:00:00Z',
        'karpenter.sh/do-not-disrupt': 'true',
        'cluster-autoscaler.kubernetes.io/scale-down-disabled': 'true',
      },
    },
    spec: {
      podCIDR: '10.0.0.0/24',
      providerID: 'aws:///i-1',
      unschedulable: true,
      taints: [{ key: 'k', effect: 'NoSchedule' }],
    },
    status: {
      capacity: { cpu: '2' },
      allocatable: { cpu: '1900m' },
      conditions: [
        { type: 'Ready', status: 'True', reason: 'KubeletReady', lastTransitionTime: '2026-11-22T12:00:00Z' },
      ],
      addresses: [{ type: 'InternalIP', address: '10.1.0.2' }],
      nodeInfo: { kubeletVersion: 'v1.36.3' },
    },
  } satisfies Node;
  const node = structuredClone(kept) as Node;
  node.metadata.annotations!.other = 'x'.repeat(1000);
  node.status!.images = [{ names: ['a'.repeat(1000)] }];
  node.status!.nodeInfo!.osImage = 'some';
  expect(slimNode(node)).toEqual(kept);
});

it('slimCertificateRequest keeps the judged fields, and of an answered request only that it was answered', () => {
  const spec = { request: 'cmVxdWVzdA==', signerName: 's', usages: ['server auth'], username: 'u', groups: ['g'] };
  const csr = partOf<CertificateSigningRequest>({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name: 'csr', uid: 'u', resourceVersion: '7', annotations: { other: 'x' } },
    spec: { ...spec, extra: { other: ['x'] } },
  });
  const metadata = { name: 'csr', uid: 'u', resourceVersion: '7' };
  expect(slimCertificateRequest(csr)).toEqual({ ...csr, metadata, spec });
  const approved = { type: 'Approved', status: 'True' };
  csr.status = { conditions: [{ ...approved, message: 'x'.repeat(1000) }], certificate: 'x'.repeat(1000) };
  expect(slimCertificateRequest(csr)).toEqual({
    ...csr,
    metadata,
    spec: { signerName: 's', request: '' },
    status: { conditions: [approved] },
  });
});
