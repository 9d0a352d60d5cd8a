import { execFileSync } from 'node:child_process';
import { gzipSync } from 'node:zlib';
import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { kubeadmInit, kubeadmJoinByToken, kubeadmKeys } from '../../../../operator/shoot/kubeadm.ts';
import { certificateKeyFor } from '../../../../operator/shoot/kubeadm-certs.ts';
import { issueShootPKI, type PKIData, planShootPKI } from '../../../../operator/shoot/pki.ts';
import { planEncryption } from '../../../../operator/shoot/secrets-encryption.ts';
import { type ControlPlaneGroupBootstrap, DISCOVERY_FILE } from '../../../../providers/contract.ts';
import { controlPlaneUserData } from '../../../../providers/machines/control-plane-data.ts';
import { LONGEST_USER_DATA } from '../../../../providers/machines/user-data.ts';
import { context, pool } from '../fixtures.ts';

interface CloudConfig {
  write_files: { path: string; permissions: string; content: string }[];
  runcmd: string[][];
}

const HOST = 'shoot--team--one-0123456789abcdef.elb.eu-central-1.amazonaws.com';
const TOKEN = 'abcdef.0123456789abcdef';
const values = {
  shoot: { name: 'one', namespace: 'team' },
  version: '1.36.3',
  addresses: { apiServer: HOST, etcd: [] },
  endpoint: { host: HOST, port: 6443 },
  networks: { pods: '10.96.0.0/16', services: '10.97.0.0/16' },
};
const own = pool({
  name: 'control-plane',
  taints: [{ key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }],
});
const ctx = context({ apiserverURL: `https://${HOST}:6443` });
const init = kubeadmInit(values, {}, 'cloud')
  .map((one) => JSON.stringify(one))
  .join('\n---\n');
const fixed = { 'ca.crt': 'CA\n', 'ca.key': 'CA KEY\n', 'etcd/ca.key': 'ETCD KEY\n', 'sa.key': 'SA KEY\n' };
const joining = (key: string): ControlPlaneGroupBootstrap => ({
  init,
  first: { join: JSON.stringify(kubeadmJoinByToken(DISCOVERY_FILE, key)), discovery: `token: ${TOKEN}\n` },
});
const begin = controlPlaneUserData(ctx, own, { init, first: { begin: fixed } });
const join = controlPlaneUserData(ctx, own, joining('f'.repeat(64)));
const filesIn = (text: string) => (load(text) as CloudConfig).write_files;
const fileIn = (text: string, path: string) => filesIn(text).find((file) => file.path === path);

describe('the user data of control plane machines', () => {
  it('equals the golden file', async () => {
    await expect(begin).toMatchFileSnapshot('golden/control-plane-begin.yaml');
    await expect(join).toMatchFileSnapshot('golden/control-plane-join.yaml');
  });

  it('contains CA keys only for the first machine, readable by root only', () => {
    const keys = filesIn(begin).filter(({ content }) => content.includes('KEY'));
    expect(keys.map(({ path, permissions }) => [path, permissions])).toEqual([
      ['/etc/kubernetes/pki/ca.key', '0600'],
      ['/etc/kubernetes/pki/etcd/ca.key', '0600'],
      ['/etc/kubernetes/pki/sa.key', '0600'],
    ]);
    expect(filesIn(join).some(({ path }) => path.startsWith('/etc/kubernetes/pki'))).toBe(false);
    for (const { path, permissions, content } of filesIn(join))
      if (content.includes(TOKEN) || content.includes('f'.repeat(64)))
        expect([path, permissions]).toEqual([path, '0600']);
  });

  it('never lets a joining machine initialize a cluster', () => {
    expect(fileIn(join, '/etc/coppice/secret/kubeadm-join.yaml')).toBeDefined();
    expect(fileIn(begin, '/etc/coppice/secret/kubeadm-join.yaml')).toBeUndefined();
    const { content } = fileIn(join, '/etc/coppice/control-plane.sh')!;
    expect(content).toMatch(
      /if \[ -e "\$SECRET\/kubeadm-join\.yaml" \]; then[\s\S]*kubeadm join[\s\S]*else[\s\S]*kubeadm init/,
    );
  });

  it('starts kubeadm with the other services, and the kubelet once it has a configuration', () => {
    expect(fileIn(begin, '/etc/coppice/machine.env')!.content).toContain("CONTROL_PLANE='kubeadm'");
    expect(fileIn(begin, '/etc/systemd/system/kubelet.service')!.content).toContain(
      'test -s /etc/kubernetes/kubelet.conf',
    );
    expect(load(fileIn(begin, '/etc/coppice/kubelet.yaml')!.content)).toMatchObject({
      staticPodPath: '/etc/kubernetes/manifests',
    });
    expect((load(begin) as CloudConfig).runcmd).toEqual([['/etc/coppice/install.sh']]);
  });

  it('contains each file once, and valid scripts', () => {
    for (const text of [begin, join]) {
      const paths = filesIn(text).map(({ path }) => path);
      expect(paths).toEqual([...new Set(paths)]);
      for (const { path, content } of filesIn(text).filter((file) => file.path.endsWith('.sh')))
        expect(() => execFileSync('bash', ['-n'], { input: content }), path).not.toThrow();
    }
  });

  it('fits the limit of every cloud when compressed, with real keys', async () => {
    const parameters = { apiServerAddress: HOST, etcdAddresses: [], services: '10.97.0.0/16', selfHosted: true };
    const now = new Date('2026-11-21T00:00:00Z');
    const empty = planEncryption({}, { isNew: true, rotate: false, now });
    const pki: PKIData = await issueShootPKI(empty, planShootPKI(empty, parameters, now), parameters, now);
    const real = { ...ctx, clusterCA: pki['ca.crt']! };
    const long = [
      controlPlaneUserData(real, own, { init, first: { begin: kubeadmKeys(pki) } }),
      controlPlaneUserData(real, own, joining(certificateKeyFor(pki, TOKEN))),
    ];
    for (const text of long) expect(gzipSync(text).length).toBeLessThan(LONGEST_USER_DATA * 0.75);
  });

  it('is refused beyond that limit', () => {
    const taints = Array.from({ length: 600 }, (_one, index) => ({
      key: `${(index * 7919).toString(36)}.example.org/${(index * 104729).toString(36).repeat(8).slice(0, 60)}`,
      value: (index * 15485863).toString(36).repeat(8).slice(0, 63),
      effect: 'NoSchedule' as const,
    }));
    expect(() => controlPlaneUserData(ctx, { ...own, taints }, joining('0'))).toThrow(/clouds take 16384/);
  });
});
