import { GROUP, OTHERS_ANNOTATIONS } from '../api/group.ts';
import type { BuiltinCondition, CertificateSigningRequest, Node } from '../kube/resources.ts';
import { LONGEST_REQUEST } from '../pki/request-size.ts';

/** Annotations for autoscalers and of clouds; no other annotations are read. */
const OF_OTHERS: readonly string[] = [
  OTHERS_ANNOTATIONS.doNotDisrupt,
  OTHERS_ANNOTATIONS.scaleDownDisabled,
  OTHERS_ANNOTATIONS.instanceID,
];

/**
 * The fields of a Node that are read: a tenant may write megabytes of annotations, and the image list alone takes many
 * KiB.
 */
export function slimNode(node: Node): Node {
  const { name, uid, resourceVersion, creationTimestamp, deletionTimestamp, labels, annotations = {} } = node.metadata;
  const { podCIDR, podCIDRs, providerID, unschedulable, taints } = node.spec ?? {};
  const { capacity, allocatable, conditions, addresses, nodeInfo } = node.status ?? {};
  const ours = Object.entries(annotations).filter(([key]) => key.startsWith(`${GROUP}/`) || OF_OTHERS.includes(key));
  return {
    apiVersion: node.apiVersion,
    kind: node.kind,
    metadata: {
      name,
      ...(uid && { uid }),
      ...(resourceVersion && { resourceVersion }),
      ...(creationTimestamp && { creationTimestamp }),
      ...(deletionTimestamp && { deletionTimestamp }),
      ...(labels && { labels }),
      ...(ours.length > 0 && { annotations: Object.fromEntries(ours) }),
    },
    spec: {
      ...(podCIDR && { podCIDR }),
      ...(podCIDRs && { podCIDRs }),
      ...(providerID && { providerID }),
      ...(unschedulable && { unschedulable }),
      ...(taints && { taints }),
    },
    status: {
      ...(capacity && { capacity }),
      ...(allocatable && { allocatable }),
      ...(conditions && { conditions: conditions.map(slimCondition) }),
      ...(addresses && { addresses }),
      ...(nodeInfo && { nodeInfo: { kubeletVersion: nodeInfo.kubeletVersion } }),
    },
  };
}

/**
 * The fields of a certificate request that are read. Of an answered request only the fact is kept; the text of a
 * request too long to parse is dropped.
 */
export function slimCertificateRequest(csr: CertificateSigningRequest): CertificateSigningRequest {
  const { name, uid, resourceVersion } = csr.metadata;
  const { signerName, usages, username, groups, request } = csr.spec;
  const { conditions = [], certificate } = csr.status ?? {};
  const read = request.length > LONGEST_REQUEST ? '' : request;
  const isAnswered = conditions.length > 0 || certificate !== undefined;
  return {
    apiVersion: csr.apiVersion,
    kind: csr.kind,
    metadata: { name, ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) },
    spec: isAnswered
      ? { signerName, request: '' }
      : {
          signerName,
          request: read,
          ...(usages && { usages }),
          ...(username && { username }),
          ...(groups && { groups }),
        },
    ...(isAnswered && {
      status: {
        conditions: conditions.map(({ type, status }) => ({ type, status })),
        ...(conditions.length === 0 && { certificate: certificate ?? '' }),
      },
    }),
  };
}

/** Without the heartbeat time, which adds nothing to the status. */
const slimCondition = ({ type, status, reason, message, lastTransitionTime }: BuiltinCondition): BuiltinCondition => ({
  type,
  status,
  ...(reason && { reason }),
  ...(message && { message }),
  ...(lastTransitionTime && { lastTransitionTime }),
});
