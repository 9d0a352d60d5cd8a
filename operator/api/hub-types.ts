import { z } from 'zod';
import { labelName } from './schema.ts';

/** Rights of a deploying hub in its members. */
const rights = z
  .enum(['Manage', 'Workloads'])
  .describe(
    'What the hub may do in a member. Manage: everything, as its documentation asks for. Workloads: see everything, and write what workloads are made of, but no roles, namespaces, nodes, kinds or webhooks. Absent: Manage.',
  )
  .optional();

export const argoCD = z
  .object({
    namespace: labelName('Namespace that Argo CD runs in, where its cluster Secrets are. Absent: argocd.').optional(),
    project: labelName('AppProject that the clusters are for. Absent: all that name them.').optional(),
    rights,
  })
  .describe('Argo CD: a cluster Secret for each cluster, with labels that cluster generators select.');

export const flux = z
  .object({
    namespace: labelName(
      "Namespace of the kubeconfig Secrets in the hub: that of the Kustomizations and HelmReleases that name them. Absent: the cluster's own, which is possible only where the garden is the hub.",
    ).optional(),
    rights,
  })
  .describe('Flux: a kubeconfig Secret for each cluster, which Kustomizations and HelmReleases name.');

export const kueue = z
  .object({
    namespace: labelName(
      'Namespace that Kueue runs in on the hub, where it looks for kubeconfigs. Absent: kueue-system.',
    ).optional(),
    config: labelName(
      'MultiKueueConfig that lists the clusters, and AdmissionCheck that ClusterQueues name; made where missing. Absent: the name of the Hub.',
    ).optional(),
    origin: labelName(
      "Kueue's setting multiKueue.origin: the label of what it makes in a member. Absent: multikueue.",
    ).optional(),
    evicts: z
      .boolean()
      .describe(
        'Have Kueue stop the jobs of a cluster that leaves and start them again in others. Absent: no; the leave waits until they have ended.',
      )
      .optional(),
  })
  .describe(
    "Kueue's MultiKueue: a MultiKueueCluster for each cluster, and its name in the list that jobs are dispatched by.",
  );

export const clusternet = z
  .object({ rights })
  .describe(
    'Clusternet: a namespace with a ManagedCluster, which its controller manager deploys to. No agent runs in the cluster.',
  );

export const openClusterManagement = z
  .object({
    clusterSet: labelName(
      'ManagedClusterSet that the clusters are put into. Absent: the one named default.',
    ).optional(),
  })
  .describe('Open Cluster Management: a ManagedCluster for each cluster, with its agents in the hub.');
