import { execFileSync } from 'node:child_process';
import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { TOOLS } from '../../../../operator/garden/toolchain/tools.ts';
import { createCA } from '../../../../operator/pki/certificates.ts';
import { writeKubeconfigText } from '../../../../operator/pki/kubeconfig.ts';
import { RELEASES } from '../../../../providers/machines/software.ts';
import { LONGEST_USER_DATA, userData } from '../../../../providers/machines/user-data.ts';
import { context, pool } from '../fixtures.ts';

interface CloudConfig {
  bootcmd: string[][];
  write_files: { path: string; permissions: string; content: string }[];
  runcmd: string[][];
}

const TOKEN = 'abcdef.0123456789abcdef';
const BOOTSTRAP = `token: ${TOKEN}\n`;
const ctx = context({ apiserverURL: 'https://203.0.113.10:6443' });
const spot = pool({
  labels: { team: "o'hara", 'node-role.kubernetes.io/x': '' },
  taints: [{ key: 'spot', value: 'true', effect: 'NoSchedule' }],
});
const text = userData(ctx, spot, BOOTSTRAP);
const config = load(text) as CloudConfig;
const fileOf = (path: string) => config.write_files.find((file) => file.path === path)!;

describe('user data', () => {
  it('equals the golden file', async () => {
    await expect(text).toMatchFileSnapshot('golden/user-data.yaml');
  });

  it('starts with the line that cloud-init requires, and is equal for equal machines', () => {
    expect(text.split('\n')[0]).toBe('#cloud-config');
    expect(userData(ctx, spot, BOOTSTRAP)).toBe(text);
  });

  it('lets only root read its token, and contains no other secret', () => {
    const holding = config.write_files.filter(({ content }) => content.includes(TOKEN));
    expect(holding.map(({ path, permissions }) => [path, permissions])).toEqual([
      ['/etc/coppice/secret/bootstrap.kubeconfig', '0600'],
    ]);
    expect(config.bootcmd).toContainEqual(['install', '-d', '-m', '700', '/etc/coppice/secret']);
    expect(text).not.toMatch(/PRIVATE KEY|client-key-data/);
  });

  it("lets the kubelet join with the token, under the provider's name", () => {
    const { content } = fileOf('/etc/systemd/system/kubelet.service');
    expect(content).toContain('--bootstrap-kubeconfig=/etc/coppice/secret/bootstrap.kubeconfig');
    expect(content).toContain('--hostname-override=${NODE_NAME}');
    expect(load(fileOf('/etc/coppice/kubelet.yaml').content)).toMatchObject({
      cgroupDriver: 'systemd',
      clusterDNS: ['10.97.0.10'],
      serverTLSBootstrap: true,
      registerWithTaints: spot.taints,
      maxPods: 110,
    });
  });

  it("installs the releases that the garden tests, and the cluster's Kubernetes version", () => {
    const env = fileOf('/etc/coppice/machine.env').content;
    expect(env).toContain("KUBERNETES='1.36.3'");
    expect(RELEASES).toEqual({
      CONTAINERD: TOOLS.containerd.version,
      RUNC: TOOLS.runc.version,
      CNI_PLUGINS: TOOLS.ptp.version,
    });
  });

  it('uses the URLs and checksums of the toolchain', () => {
    const install = fileOf('/etc/coppice/install.sh').content;
    for (const [tool, version] of [
      ['containerd', '$CONTAINERD'],
      ['runc', '$RUNC'],
      ['ptp', '$CNI_PLUGINS'],
      ['kubelet', '$KUBERNETES'],
    ] as const) {
      const { archive, version: release } = TOOLS[tool];
      const urls = [archive!.url, archive!.checksum.url];
      for (const url of urls) {
        const written = url.replaceAll(release, version).replaceAll('{arch}', '$arch');
        const parts = written.split('/').slice(-2).join('/').replace('kubelet', '$name');
        const suffix = /\.sha256(sum)?$/.exec(parts)?.[0];
        expect(install, url).toContain(suffix && !parts.includes('runc') ? `"$url${suffix}"` : parts.split('/')[1]);
      }
    }
  });

  it.each(['/etc/coppice/install.sh'])('contains %s as a valid shell script', (path) => {
    execFileSync('bash', ['-n'], { input: fileOf(path).content });
  });

  it('maintains routes between nodes by a valid Python program', () => {
    const { content } = fileOf('/etc/coppice/pod_network.py');
    expect(content.startsWith('#!/usr/bin/env python3\n')).toBe(true);
    execFileSync('python3', ['-c', 'import ast, sys; ast.parse(sys.stdin.read())'], { input: content });
  });

  it('fits the limit of every cloud with real certificates', async () => {
    const ca = await createCA({ commonName: 'ca', days: 1, now: new Date() });
    const server = 'https://203.0.113.10:6443';
    const bootstrap = writeKubeconfigText({
      server,
      ca: ca.cert,
      token: TOKEN,
      name: 'blue',
      user: 'kubelet-bootstrap',
    });
    const shoot = { ...ctx, clusterCA: ca.cert };
    const bytes = Buffer.byteLength(userData(shoot, spot, bootstrap));
    expect(bytes).toBeLessThan(LONGEST_USER_DATA * 0.9);
  });

  it('is refused beyond that limit', () => {
    const labels = Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`l${i}.example.org/x`, 'y'.repeat(63)]));
    const taints = Array.from({ length: 32 }, (_, i) => ({
      key: `t${i}.example.org/${'x'.repeat(60)}`,
      value: 'y'.repeat(63),
      effect: 'NoSchedule' as const,
    }));
    expect(() => userData(ctx, pool({ labels, taints }), BOOTSTRAP)).toThrow(/clouds take 16384/);
  });
});
