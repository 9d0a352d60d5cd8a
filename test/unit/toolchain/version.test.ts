import { describe, expect, test } from 'vitest';
import { TOOLS } from '../../../operator/garden/toolchain/tools.ts';
import { isFitting } from '../../../operator/garden/toolchain/version.ts';

describe('isFitting', () => {
  test.each([
    ['1.36.3', '1.36.3', 'same-minor', true],
    ['1.36.10', '1.36.3', 'same-minor', true],
    ['1.36.2', '1.36.3', 'same-minor', false],
    ['1.37.3', '1.36.3', 'same-minor', false],
    ['2.36.3', '1.36.3', 'same-minor', false],
    ['1.6.20', '1.6', 'at-least', true],
    ['1.5.99', '1.6', 'at-least', false],
    ['2.0', '1.6', 'at-least', true],
    ['nonsense', '1.6', 'at-least', false],
    ['nonsense', '1.6', 'any', true],
  ] as const)('%s for %s (%s): %s', (found, pinned, accepts, fits) => {
    expect(isFitting(found, pinned, accepts)).toBe(fits);
  });
});

describe('the reported version of tools', () => {
  test.each([
    ['kube-apiserver', 'Kubernetes v1.36.3\n', '1.36.3'],
    ['kubectl', 'Client Version: v1.32.4-dispatcher\nKustomize Version: v5.5.0\n', '1.32.4'],
    ['etcd', 'etcd Version: 3.7.3\nGit SHA: Not provided\n', '3.7.3'],
    ['etcdctl', 'etcdctl version: 3.7.3\nAPI version: 3.7\n', '3.7.3'],
    ['etcdutl', 'etcdutl version: 3.7.3\nAPI version: 3.7\n', '3.7.3'],
    ['coredns', 'CoreDNS-1.15.0\nlinux/amd64, go1.26.8, \n', '1.15.0'],
    ['kwok', 'kwok version v0.8.0 go1.26.8 (linux/amd64)\n', '0.8.0'],
    ['containerd', 'containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3\n', '1.6.20'],
    ['containerd', 'containerd github.com/containerd/containerd/v2 v2.1.4 75cb2b7193e4\n', '2.1.4'],
    ['ctr', 'ctr github.com/containerd/containerd/v2 v2.4.2\n', '2.4.2'],
    ['containerd-shim-runc-v2', 'containerd-shim-runc-v2:\n  Version:  1.6.20~ds1\n  Revision: 1\n', '1.6.20'],
    ['runc', 'runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1+deb12u1\n', '1.1.5'],
  ] as const)('%s', (name, text, version) => {
    expect(TOOLS[name].asks?.pattern.exec(text)?.[1]).toBe(version);
  });
});
