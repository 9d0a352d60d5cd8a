import { request } from 'node:https';
import { connect } from 'node:tls';
import { expect, it } from 'vitest';
import { findCondition, isTrue } from '../../operator/api/conditions.ts';
import { API_VERSION, LABELS } from '../../operator/api/group.ts';
import type { Seed } from '../../operator/api/seed.ts';
import { parseUntrustedKubeconfig } from '../../operator/kube/kubeconfig.ts';
import {
  CONFIGMAPS,
  type ConfigMap,
  EVENTS,
  type KubeObject,
  NAMESPACES,
  SEEDS,
  SHOOTS,
} from '../../operator/kube/resources.ts';
import {
  deleteCluster,
  e2e,
  gardenClient,
  kubeconfigFile,
  kubeconfigOf,
  kubectl,
  makeCluster,
  type Name,
  ok,
  uniqueName,
  until,
  untilReady,
  untilShoot,
} from '../kit/garden.ts';

e2e('the name of an API server', () => {
  const namespace = uniqueName('dns');
  const zone = 'zone';
  const domain = `${namespace}.example.com`;
  const named = (label: string) => ({ domain: `${label}.${domain}`, providers: [{ type: 'simulated' }] });
  const records = async (): Promise<Record<string, string>> =>
    (await gardenClient().get<ConfigMap>(CONFIGMAPS, zone, namespace)).data ?? {};
  const addressOf = async (host: string): Promise<string> => JSON.parse((await records())[`${host}.A`]!).values[0];
  const recordsReady = (cluster: Name, status: 'True' | 'False') =>
    until(
      cluster,
      (found) => {
        const condition = findCondition(found?.status?.conditions, 'DNSRecordsReady');
        return condition?.status === status && condition;
      },
      `to have DNSRecordsReady ${status}`,
    );
  let blue: Name;
  let refused: Name;

  it('is in the zone, in the certificate and in the kubeconfig, and resolves to the API server', async () => {
    const client = gardenClient();
    await client.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    await client.create({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: zone, namespace, labels: { [LABELS.dnsZone]: 'simulated' } },
      data: { domain, [`api.red.${domain}.A`]: JSON.stringify({ ttl: 60, values: ['203.0.113.1'] }) },
    } as KubeObject);
    [blue, refused] = await Promise.all([
      makeCluster({ dns: named('blue') }, { namespace }),
      makeCluster({ dns: named('red') }, { namespace }),
    ]);
    const host = `api.blue.${domain}`;
    const { status } = await untilReady(blue);
    const said = await recordsReady(blue, 'True');
    const { hostname, port } = new URL(status!.endpoint!);
    expect(said.message).toBe(`${host} points to ${hostname}`);
    expect(await addressOf(host)).toBe(hostname);
    const garden = (await client.get(NAMESPACES, 'kube-system')).metadata.uid;
    expect((await records())[`_coppice.${host}.TXT`]).toContain(
      `heritage=coppice,coppice/garden=${garden},coppice/cluster=${namespace}/${blue.name},coppice/type=A`,
    );
    expect(findCondition(status!.conditions, 'AllFieldsActedOn')).toBeUndefined();

    const server = `https://${host}:${port}`;
    // The address stays what is used: not everybody's resolver knows the name.
    const text = await expect
      .poll(() => kubeconfigOf(blue), { timeout: 30_000 })
      .toContain(server)
      .then(() => kubeconfigOf(blue));
    expect(text).toContain(`current-context: ${blue.name}\n`);
    expect(text).toContain(`name: ${blue.name}-external`);
    const connection = parseUntrustedKubeconfig(text);
    expect(connection.server).toBe(status!.endpoint);

    const answer = await new Promise<string>((resolve, reject) => {
      const { ca, cert, key } = connection;
      request(
        `${server}/version`,
        {
          ...(ca && { ca }),
          ...(cert && { cert }),
          ...(key && { key }),
          // As a resolver of the zone would answer, and no other is asked.
          lookup: (name, options, done) => {
            addressOf(name).then(
              (address) => (options.all ? done(null, [{ address, family: 4 }]) : done(null, address, 4)),
              (error: Error) => done(error, '', 4),
            );
          },
        },
        (response) => {
          let body = '';
          response.on('data', (chunk) => (body += String(chunk)));
          response.on('end', () => resolve(body));
        },
      )
        .on('error', reject)
        .end();
    });
    expect(JSON.parse(answer)).toMatchObject({ major: '1' });
    const kubeconfig = await kubeconfigFile(blue);
    const verified = ['--server', status!.endpoint!, '--tls-server-name', host, 'get', 'namespaces'];
    expect(ok(await kubectl(verified, { kubeconfig }))).toContain('kube-system');
    const other = await kubectl(verified.toSpliced(3, 1, `api.other.${domain}`), { kubeconfig });
    expect(other.stderr).toContain('certificate is valid for');
  });

  it('is left to a foreign record, which blocks nothing else and is reported', async () => {
    await untilReady(refused);
    const said = await recordsReady(refused, 'False');
    expect(said.codes).toEqual(['ERR_INFRA_DEPENDENCIES']);
    expect(said.message).toContain(`api.red.${domain} has a record of type A (203.0.113.1) that Coppice did not make`);
    expect(JSON.parse((await records())[`api.red.${domain}.A`]!)).toEqual({ ttl: 60, values: ['203.0.113.1'] });
    expect(await kubeconfigOf(refused)).not.toContain(`api.red.${domain}`);
    // The certificate has it anyhow: when the record comes to be ours, no API server starts anew for it.
    const { hostname, port } = new URL((await untilReady(refused)).status!.endpoint!);
    const names = await new Promise<string | undefined>((resolve, reject) => {
      const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
        resolve(socket.getPeerCertificate().subjectaltname);
        socket.destroy();
      }).on('error', reject);
    });
    expect(names).toContain(`DNS:api.red.${domain}`);
  });

  it('cannot be changed, and is deleted with its cluster; foreign records stay', async () => {
    const patch = JSON.stringify({ spec: { dns: { domain: 'elsewhere.example.com' } } });
    const change = ['patch', 'wc', blue.name, '-n', namespace, '--type=merge', '-p', patch];
    expect((await kubectl(change)).stderr).toContain('dns.domain cannot be changed or removed');
    await Promise.all([deleteCluster(blue), deleteCluster(refused)]);
    expect(Object.keys(await records()).sort()).toEqual([`api.red.${domain}.A`, 'domain'].sort());
  });

  it("is also in the platform's domain, on a seed with one", async () => {
    const client = gardenClient();
    const local = await client.get<Seed>(SEEDS, 'local');
    const seed = uniqueName('named');
    await client.create({
      apiVersion: API_VERSION,
      kind: 'Seed',
      metadata: { name: seed },
      spec: {
        ...local.spec,
        settings: { scheduling: { visible: false } },
        dns: {
          internal: { type: 'simulated', domain: `internal.${domain}`, credentialsRef: { name: 'none', namespace } },
        },
      },
    });
    const shoot = { name: uniqueName('yellow'), namespace };
    await client.create({
      apiVersion: API_VERSION,
      kind: 'Shoot',
      metadata: shoot,
      spec: { cloudProfile: { name: 'local' }, region: 'local', seedName: seed, provider: { type: 'local' } },
    });
    const host = `api.${shoot.name}.${namespace}.internal.${domain}`;
    const { status } = await untilShoot(
      shoot,
      (found) =>
        isTrue(found?.status?.conditions, 'Ready') && isTrue(found?.status?.conditions, 'DNSRecordsReady') && found,
      'to be Ready, with its name',
    );
    const [internal, platform] = status!.advertisedAddresses!;
    expect(platform).toMatchObject({ name: 'internal-domain', url: `https://${host}:${new URL(internal!.url).port}` });
    expect(await addressOf(host)).toBe(new URL(internal!.url).hostname);
    await expect.poll(() => kubeconfigOf(shoot), { timeout: 30_000 }).toContain(`name: ${shoot.name}-internal-domain`);
    await client.delete(SHOOTS, shoot.name, namespace);
    await untilShoot(shoot, (found) => !found, 'to be gone');
    expect(Object.keys(await records()).filter((key) => key.includes(host))).toEqual([]);
    await client.delete(SEEDS, seed);
  });

  it("whose zone is gone does not block the cluster's deletion", async () => {
    const green = await makeCluster({ dns: named('green') }, { namespace });
    await untilReady(green);
    await recordsReady(green, 'True');
    await gardenClient().delete(CONFIGMAPS, zone, namespace);
    await deleteCluster(green);
    const { items } = await gardenClient().list<KubeObject & { type: string; involvedObject?: { name: string } }>(
      EVENTS,
      {
        namespace,
      },
    );
    const warnings = items.filter(
      ({ type, involvedObject }) => type === 'Warning' && involvedObject?.name === green.name,
    );
    expect(warnings).toEqual([]);
  });
});
