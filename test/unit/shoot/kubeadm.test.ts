import { X509Certificate } from 'node:crypto';
import { dump, load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { controlPlaneMachineService } from '../../../operator/shoot/control-plane-services.ts';
import {
  clusterInfo,
  kubeadmAuthorities,
  kubeadmConfig,
  kubeadmInit,
  kubeadmJoin,
  kubeadmKeys,
} from '../../../operator/shoot/kubeadm.ts';
import { issueShootPKI, pkiParameters, planShootPKI } from '../../../operator/shoot/pki.ts';
import { encryptionOf, planEncryption } from '../../../operator/shoot/secrets-encryption.ts';
import { controlPlane, NOW } from './values.ts';

type ControlPlanePlace = NonNullable<Parameters<typeof kubeadmInit>[2]>;

const values = controlPlane(3);
const parameters = { ...pkiParameters(values), selfHosted: true };
const pki = await issueShootPKI({}, planShootPKI({}, parameters, NOW), parameters, NOW);
const yaml = (documents: object[]) => documents.map((one) => dump(one, { lineWidth: -1, noRefs: true })).join('---\n');

describe('the configuration of kubeadm', () => {
  it('is as recorded', async () => {
    await expect(yaml(kubeadmInit(values, pki))).toMatchFileSnapshot('golden/kubeadm-init.yaml');
    await expect(yaml([kubeadmJoin()])).toMatchFileSnapshot('golden/kubeadm-join.yaml');
  });

  it("names the API server by the seed's exposure", () => {
    const sans = (host: string) =>
      (kubeadmInit({ ...values, endpoint: { host, port: 443 } }, pki)[1] as { apiServer: { certSANs: string[] } })
        .apiServer.certSANs;
    expect(sans('lb.example.com')).toEqual(['localhost', 'lb.example.com', '127.0.0.1', '10.1.0.10']);
    expect(sans('192.0.2.7')).toEqual(['localhost', '127.0.0.1', '10.1.0.10', '192.0.2.7']);
  });

  it("keeps Kubernetes 1.35's volume plugins below /var in the seed, where a machine can write", () => {
    const ofManager = (given: typeof values, place?: ControlPlanePlace) =>
      (kubeadmInit(given, pki, place)[1] as { controllerManager: { extraArgs: object[] } }).controllerManager.extraArgs;
    const folder = { name: 'flex-volume-plugin-dir', value: '/var/lib/kubelet/volume-plugins' };
    const older = { ...values, version: '1.35.4' };
    expect(ofManager(older)).toContainEqual(folder);
    expect(ofManager(older, 'cloud')).not.toContainEqual(folder);
    expect(ofManager(values)).not.toContainEqual(folder);
  });

  it('is read by joining machines in the cluster, with the version desired by then', () => {
    const { metadata, data } = kubeadmConfig({ ...values, version: '1.36.9' }, pki);
    expect(`${metadata.namespace}/${metadata.name}`).toBe('kube-system/kubeadm-config');
    const { ClusterConfiguration } = data as Record<string, string>;
    expect(load(ClusterConfiguration!)).toEqual({
      ...JSON.parse(JSON.stringify(kubeadmInit({ ...values, version: '1.36.9' }, pki)[1])),
      // Who begins adds it on the machine.
      certificateValidityPeriod: '1440h',
    });
  });

  it("contains the operator's CAs, each with its key", () => {
    const files = kubeadmAuthorities(pki);
    for (const id of ['ca', 'etcd/ca', 'front-proxy-ca']) {
      expect(new X509Certificate(files[`${id}.crt`]!).ca).toBe(true);
      expect(files[`${id}.key`]).toContain('PRIVATE KEY');
    }
    expect(new Set(Object.values(files)).size).toBe(8);
  });

  it('encrypts Secrets of a new cluster, by a file in a folder that API servers already mount', () => {
    const keys = planEncryption(pki, { isNew: true, rotate: false, now: NOW });
    const { apiServer } = kubeadmInit(values, keys)[1] as {
      apiServer: { extraArgs: { name: string; value: string }[] };
    };
    const flag = { name: 'encryption-provider-config', value: '/etc/kubernetes/pki/encryption.json' };
    expect(apiServer.extraArgs).toContainEqual(flag);
    const { resources } = JSON.parse(kubeadmKeys(keys)['encryption.json']!);
    expect(resources).toEqual([
      { resources: ['secrets'], providers: [{ secretbox: { keys: [encryptionOf(keys)!.write] } }] },
    ]);
    const { ClusterConfiguration } = kubeadmConfig(values, keys).data as Record<string, string>;
    expect(load(ClusterConfiguration!)).toMatchObject({ apiServer: { extraArgs: expect.arrayContaining([flag]) } });
    expect(ClusterConfiguration).not.toContain(encryptionOf(keys)!.write.secret);
    // Another key changes the file alone: nothing that kubeadm has written names a key.
    const rotating = planEncryption(keys, { isNew: false, rotate: true, now: NOW });
    expect(kubeadmInit(values, rotating)).toEqual(kubeadmInit(values, keys));
    expect(kubeadmKeys(rotating)['encryption.json']).not.toBe(kubeadmKeys(keys)['encryption.json']);
  });

  it('lets machines of an earlier cluster continue without encryption', () => {
    expect(kubeadmKeys(pki)).toEqual(kubeadmAuthorities(pki));
  });

  it('leaves all certificates to the machines, except those of people and worker machines', () => {
    const ids = Object.keys(pki).filter((file) => file.endsWith('.crt'));
    expect(ids.sort()).toEqual(['admin.crt', 'ca-etcd.crt', 'ca-front-proxy.crt', 'ca.crt', 'kube-proxy.crt']);
    expect(planShootPKI(pki, parameters, NOW).issue).toEqual([]);
  });

  it('is discovered in kube-public without a secret', () => {
    const { metadata, data } = clusterInfo(values, pki);
    expect(metadata).toEqual({ name: 'cluster-info', namespace: 'kube-public' });
    const found = load((data as { kubeconfig: string }).kubeconfig) as Record<string, any>;
    expect(found.clusters[0].cluster.server).toBe('https://10.1.0.10:6443');
    expect(found.users[0].user).toEqual({});
  });
});

describe('the Service of a machine', () => {
  it('leads to that machine, ready or not, for its API server and etcd member', () => {
    const { metadata, spec } = controlPlaneMachineService(values, 'control-plane', 2);
    expect(metadata.name).toBe('machines-control-plane-2');
    expect(spec.selector).toEqual({ 'statefulset.kubernetes.io/pod-name': 'machines-control-plane-2' });
    expect(spec.publishNotReadyAddresses).toBe(true);
    expect(spec.ports.map(({ port }: { port: number }) => port)).toEqual([6443, 2379, 2380]);
  });
});
