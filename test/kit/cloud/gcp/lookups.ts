import { decimals } from '../digits.ts';
import type { CloudModel } from '../model.ts';

/** Functions of @pulumi/gcp. */
export const lookups: CloudModel['lookups'] = {
  'gcp:organizations:getProject': ({ projectId }, { caller }) => ({
    id: `projects/${projectId ?? caller.account}`,
    projectId: projectId ?? caller.account,
    name: projectId ?? caller.account,
    number: decimals(12, projectId ?? caller.account),
    autoCreateNetwork: true,
    deletionPolicy: 'PREVENT',
    billingAccount: '',
    folderId: '',
    orgId: '',
    labels: {},
    effectiveLabels: {},
    pulumiLabels: {},
  }),
  'gcp:organizations:getClientConfig': (_, { caller, region }) => ({
    id: `projects/${caller.account}`,
    project: caller.account,
    region,
    zone: '',
    accessToken: 'ya29.fake',
    defaultLabels: caller.defaultTags,
  }),
  'gcp:compute:getZones': ({ region: asked }, { region }) => {
    const names = ['a', 'b', 'c'].map((letter) => `${asked ?? region}-${letter}`);
    return { id: asked ?? region, names, project: '', region: asked ?? region };
  },
  'gcp:container:getEngineVersions': (_, { region }) => ({
    id: region,
    location: region,
    defaultClusterVersion: '1.36.1-gke.1000000',
    latestMasterVersion: '1.36.3-gke.1000000',
    latestNodeVersion: '1.36.3-gke.1000000',
    validMasterVersions: ['1.36.3-gke.1000000', '1.36.1-gke.1000000', '1.35.4-gke.1000000'],
    validNodeVersions: ['1.36.3-gke.1000000', '1.36.1-gke.1000000', '1.35.4-gke.1000000'],
    releaseChannelDefaultVersion: {},
    releaseChannelLatestVersion: {},
    releaseChannelUpgradeTargetVersion: {},
  }),
  'gcp:container:getCluster': ({ name }, testbed) => {
    const cluster = testbed.find('gcp:container:Cluster', name);
    if (!cluster) return undefined;
    const outputs = testbed.outputs(cluster);
    return { ...outputs, masterAuths: [outputs.masterAuth] };
  },
};
