import { z } from 'zod';
import { labelName } from './schema.ts';

/** What a hub that deploys may do in its members. */
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

export const openClusterManagement = z
  .object({
    clusterSet: labelName(
      'ManagedClusterSet that the clusters are put into. Absent: the one named default.',
    ).optional(),
  })
  .describe('Open Cluster Management: a ManagedCluster for each cluster, with its agents in the hub.');
