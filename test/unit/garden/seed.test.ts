import { expect, it } from 'vitest';
import { installManifests } from '../../../operator/api/install.ts';
import { seedSpec } from '../../../operator/api/seed.ts';
import { foreignSeed, localSeed, shippedProfiles } from '../../../operator/garden/daemon/manifests.ts';
import { mountScript } from '../../../operator/garden/host/mounts.ts';
import { chooseRanges } from '../../../operator/garden/host/ranges.ts';
import { containerdConfig } from '../../../operator/garden/seed/containerd-config.ts';
import { cniConfig, kubeletConfig, kubeProxyConfig } from '../../../operator/garden/seed/node.ts';
import { isReleased, storageClass, volumeFor, wantsVolume } from '../../../operator/garden/seed/volumes.ts';
import type { PersistentVolumeClaim } from '../../../operator/kube/resources.ts';

const ranges = chooseRanges('abc', [])!;

it("the garden's seeds are valid by their schema", () => {
  expect(seedSpec.safeParse(localSeed(ranges, { url: 'http://10.0.0.1:5000' }).spec).error).toBeUndefined();
  const [namespace, secret, seed] = foreignSeed('kind: Config', { pods: '10.244.0.0/16', services: '10.96.0.0/12' });
  expect(seedSpec.safeParse(seed!.spec).error).toBeUndefined();
  expect(seed!.spec.kubeconfigRef).toEqual({ name: secret!.metadata.name, namespace: namespace!.metadata.name });
});

it('the garden has manifests to install and profiles to ship', async () => {
  expect(installManifests().length).toBeGreaterThan(3);
  expect((await shippedProfiles()).map(({ kind }) => kind)).toContain('CloudProfile');
});

it("the seed's mount script quotes paths", () => {
  const script = mountScript({ '/run/coppice/kubelet': "/home/o'neil/my state", '/var/log': '/x' }, '/state/ns/run');
  expect(script).toContain("mount -n --bind '/home/o'\\''neil/my state' '/state/ns/run/coppice/kubelet'");
  const lines = script.split('\n');
  const at = (text: string) => lines.findIndex((line) => line.includes(text));
  expect(at('/var/log')).toBeLessThan(at('--move'));
  expect(at('neil')).toBeLessThan(at('--move'));
  expect(at('--move')).toBeLessThan(at('/proc/sys/kernel/panic'));
  expect(at('--make-rshared')).toBe(lines.length - 1);
});

it("the node's configuration leaves the host unchanged", () => {
  const options = { pauseImage: 'registry.k8s.io/pause:3.10.1', pluginFolder: '/usr/lib/cni', restrictOomScore: true };
  expect(containerdConfig(options)).toContain('restrict_oom_score_adj = true');
  expect(containerdConfig(options)).not.toContain('"/var/');
  // By itself it would take these from /etc/containerd and /opt, which are for the host's own.
  expect(containerdConfig(options)).toMatch(/^imports = \[\]$/m);
  expect(containerdConfig(options)).toMatch(/^\[plugins\."io\.containerd\.nri\.v1\.nri"\]\n {2}disable = true$/m);
  expect(containerdConfig(options)).toContain('"io.containerd.image-verifier.v1.bindir"');
  const kubelet = kubeletConfig({
    nodeAddress: '10.1.2.3',
    cgroup: 'coppice-abc',
    pki: (name) => `/pki/${name}`,
    resolvConf: '/r',
  });
  expect(kubelet).toMatchObject({
    cgroupRoot: '/coppice-abc',
    address: '10.1.2.3',
    failCgroupV1: false,
    failSwapOn: false,
  });
  expect(kubeProxyConfig({ pods: ranges.pods, kubeconfig: '/k' })).toMatchObject({
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
  });
  expect(JSON.stringify(cniConfig(ranges.pods))).toContain(ranges.pods);
});

const claim = (change: Partial<PersistentVolumeClaim> = {}): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'data', namespace: 'shoot', uid: 'u1' },
  spec: { storageClassName: 'local', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '2Gi' } } },
  ...change,
});

it('a volume is created for a claim of its class only, and once', () => {
  expect(wantsVolume(claim())).toBe(true);
  expect(wantsVolume(claim({ spec: { storageClassName: 'fast' } }))).toBe(false);
  expect(wantsVolume(claim({ spec: { storageClassName: 'local', volumeName: 'pvc-u1' } }))).toBe(false);
  // Said before there is a volume: an operator that was killed then goes on.
  expect(wantsVolume(claim({ status: { phase: 'Bound' } }))).toBe(true);
  expect(wantsVolume(claim({ metadata: { name: 'a', deletionTimestamp: '2026-01-01T00:00:00Z' } }))).toBe(false);
  const volume = volumeFor(claim(), '/state/volumes');
  expect(volume.metadata.name).toBe('pvc-u1');
  expect(volume.spec).toMatchObject({
    capacity: { storage: '2Gi' },
    claimRef: { namespace: 'shoot', name: 'data', uid: 'u1' },
    hostPath: { path: '/state/volumes/pvc-u1' },
    storageClassName: storageClass().metadata.name,
  });
});

it("only Coppice's own released volumes are reclaimed", () => {
  const volume = volumeFor(claim(), '/v');
  expect(isReleased(volume)).toBe(false);
  expect(isReleased({ ...volume, status: { phase: 'Released' } })).toBe(true);
  expect(isReleased({ ...volume, metadata: { name: 'x' }, status: { phase: 'Released' } })).toBe(false);
});
