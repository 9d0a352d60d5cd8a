import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { profileManifests } from '../../../operator/api/profiles.ts';
import { clusterIn } from '../../../operator/controllers/managed/wish.ts';
import { silent } from '../../../operator/kube/log.ts';
import { awsClusters } from '../../../providers/aws/index.ts';
import { azureClusters } from '../../../providers/azure/index.ts';
import type { CloudContext, ManagedClusters } from '../../../providers/cloud.ts';
import { gcpClusters } from '../../../providers/gcp/index.ts';
import type { Account, CloudName } from '../../kit/cloud/index.ts';
import { jwt } from '../../unit/providers/jwt.ts';
import { cloudForFile, REGIONS, runnersForFile } from './testbed.ts';

const fake = cloudForFile();
const PATIENCE_MS = 10 * 60_000;
const POOL = 'projects/123456789012/locations/global/workloadIdentityPools/coppice/providers/garden';
const TRUSTED = { issuer: 'https://garden.example', subject: 'system:serviceaccount:team:wi-one', audience: 'cloud' };

let managed: Record<CloudName, ManagedClusters>;
const kept = runnersForFile(
  fake,
  // What an engine and its plugins write down, only they can show.
  () => 'real',
  async (runners) => {
    const web = await fake.cloud.web();
    managed = {
      aws: awsClusters(runners.aws, web.aws),
      gcp: gcpClusters(runners.gcp, web.gcp),
      'azure-native': azureClusters(runners['azure-native'], web.azure),
    };
  },
);

const CLOUDS: [
  name: CloudName,
  profile: string,
  cluster: string,
  config: (account: Account) => Record<string, string>,
][] = [
  ['aws', 'aws', 'aws:eks:Cluster', ({ id }) => ({ roleARN: `arn:aws:iam::${id}:role/coppice` })],
  [
    'gcp',
    'gcp',
    'gcp:container:Cluster',
    ({ id, principal }) => ({ projectID: id, workloadIdentityProvider: POOL, serviceAccountEmail: principal }),
  ],
  [
    'azure-native',
    'azure',
    'azure-native:containerservice:ManagedCluster',
    ({ credentials: { tenantID, clientID, subscriptionID } }) => ({
      tenantID: tenantID!,
      clientID: clientID!,
      subscriptionID: subscriptionID!,
    }),
  ],
];

/** All text in a directory. */
async function textIn(directory: string): Promise<string> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return (await Promise.all(files.map((file) => readFile(file, 'utf8')))).join('\n');
}

describe.each(CLOUDS)(
  'a cluster in the fake %s, by the real engine, without any lasting secret',
  (name, profileName, type, config) => {
    it(
      'is created with one token and deleted with the next, and the state contains neither',
      async () => {
        const account = fake.cloud.account(name);
        fake.cloud.trust(account, TRUSTED);
        const profile = (await profileManifests()).find(({ metadata }) => metadata.name === profileName)!;
        const state = join(kept.dir, `state-${profileName}`);
        await mkdir(state);
        const tokens: string[] = [];
        const context = (): CloudContext => {
          const { issuer: iss, subject: sub, audience: aud } = TRUSTED;
          const token = jwt({
            iss,
            sub,
            aud: [aud],
            exp: Math.floor(Date.now() / 1000) + 3600,
            jti: `${tokens.length}`,
          });
          tokens.push(token);
          return {
            owner: {
              technicalID: 'shoot--team--one',
              uid: `0b3c-${name}`,
              name: 'one',
              namespace: 'team',
              garden: 'g',
            },
            account: { id: account.id, credentials: { ...config(account), token } },
            region: REGIONS[name],
            profile,
            state: { url: pathToFileURL(state).href, passphrase: 'a phrase for tests', env: {} },
            log: silent,
            signal: new AbortController().signal,
            now: () => new Date(),
          };
        };
        const cluster = clusterIn(REGIONS[name], profile);
        const wanted = { ...cluster, zones: cluster.zones.slice(0, 2) };
        const outputs = await managed[name].apply(context(), wanted);
        expect(fake.cloud.resource(type)).toMatchObject({ account: account.id });
        expect((await managed[name].kubeconfig(context(), outputs)).expiresAt).toBeDefined();
        await managed[name].destroy(context(), wanted);
        expect(fake.cloud.resources({ type })).toEqual([]);
        const written = await textIn(state);
        for (const token of [...tokens, 'ya29.', account.secret]) expect(written).not.toContain(token);
      },
      PATIENCE_MS,
    );
  },
);
