import type { LabelSelector } from '../api/label-selector.ts';
import type { KubeObject } from './resources.ts';

export interface NetworkPolicyPort {
  /** Default TCP. */
  protocol?: string;
  /** Absent: every port. A name is a port name of the called pod. */
  port?: number | string;
  endPort?: number;
}

export interface NetworkPolicyPeer {
  podSelector?: LabelSelector;
  namespaceSelector?: LabelSelector;
  ipBlock?: { cidr: string; except?: string[] };
}

export interface IngressRule {
  from?: NetworkPolicyPeer[];
  ports?: NetworkPolicyPort[];
}

interface EgressRule {
  to?: NetworkPolicyPeer[];
  ports?: NetworkPolicyPort[];
}

/** networking.k8s.io/v1 */
export interface NetworkPolicy extends KubeObject {
  spec: {
    podSelector?: LabelSelector;
    policyTypes?: ('Ingress' | 'Egress')[];
    ingress?: IngressRule[];
    egress?: EgressRule[];
  };
}
