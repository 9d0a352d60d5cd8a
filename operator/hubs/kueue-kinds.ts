import type { Resource } from '../kube/resources.ts';

export const KUEUE_GROUP = 'kueue.x-k8s.io';
export const KUEUE_API_VERSION = `${KUEUE_GROUP}/v1beta2`;
/** Controller of the AdmissionChecks that dispatch jobs to clusters. */
export const MULTIKUEUE_CONTROLLER = `${KUEUE_GROUP}/multikueue`;

const kind = (name: string, plural: string, namespaced: boolean): Resource => ({
  group: KUEUE_GROUP,
  version: 'v1beta2',
  plural,
  kind: name,
  namespaced,
});
export const MULTIKUEUECLUSTERS = kind('MultiKueueCluster', 'multikueueclusters', false);
export const MULTIKUEUECONFIGS = kind('MultiKueueConfig', 'multikueueconfigs', false);
export const ADMISSIONCHECKS = kind('AdmissionCheck', 'admissionchecks', false);
export const WORKLOADS = kind('Workload', 'workloads', true);
export const LOCALQUEUES = kind('LocalQueue', 'localqueues', true);
export const CLUSTERQUEUES = kind('ClusterQueue', 'clusterqueues', false);
