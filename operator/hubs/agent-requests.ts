import { type CertificateSigningRequest, CSRS } from '../kube/resources.ts';
import { requestedSubject } from '../pki/requested-subject.ts';
import type { Member, Reader, Trace, WantedObject } from './contract.ts';
import { CLUSTER_NAME } from './managed-cluster.ts';

const USERS = 'system:open-cluster-management:';
const SIGNER = 'kubernetes.io/kube-apiserver-client';

/** ServiceAccount in the hub with which a member's agents request their first certificate. */
export const bootstrapOf = ({ name }: Member) => ({ namespace: 'kube-system', name: `coppice-${name}` });

/** An approved certificate request, which the hub keeps for a while. */
export const requestTrace = (member: Member, name: string): Trace => ({
  on: 'hub',
  resource: CSRS,
  name,
  labels: { [CLUSTER_NAME]: member.name },
});

export const approval = (name: string): WantedObject => ({
  on: 'hub',
  resource: CSRS,
  subresource: 'approval',
  object: {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    status: {
      conditions: [
        {
          type: 'Approved',
          status: 'True',
          reason: 'CoppiceJoin',
          message: 'the request comes from the ServiceAccount that Coppice made for the cluster',
        },
      ],
    },
  },
});

/**
 * Certificate requests to approve: only those by the member's account and for its name, as the labels can be written by
 * anybody with the right to request.
 */
export async function agentRequestsOf(hub: Reader, member: Member): Promise<string[]> {
  const { namespace, name } = bootstrapOf(member);
  const labelSelector = `${CLUSTER_NAME}=${member.name}`;
  const requests = (await hub.list(CSRS, { labelSelector })) as CertificateSigningRequest[];
  return requests
    .filter(
      ({ spec, status }) =>
        spec.username === `system:serviceaccount:${namespace}:${name}` &&
        spec.signerName === SIGNER &&
        isFor(member.name, spec.request) &&
        !status?.conditions?.length,
    )
    .map(({ metadata }) => metadata.name);
}

/** Whether the request is for an agent of this cluster only. */
function isFor(name: string, request: string): boolean {
  const { commonName = '', organizations = [] } = requestedSubject(request) ?? {};
  const [cluster, agent, ...more] = commonName.slice(USERS.length).split(':');
  const groups = organizations.filter((group) => group !== `${USERS}managed-clusters`);
  const isAgent = commonName.startsWith(USERS) && cluster === name && agent && more.length === 0;
  return Boolean(isAgent) && groups.length === 1 && groups[0] === `${USERS}${name}`;
}
