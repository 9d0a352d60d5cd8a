import { GROUP } from './group.ts';
import type { KubeObject } from './meta.ts';
import { refusingPolicy } from './refusing-policy.ts';

/**
 * Refuses Services with `externalIPs` in a garden that is also a seed: kube-proxy of every node redirects traffic for
 * such an address to pods of the Service, whoever owns the address (CVE-2020-8554). A tenant could take over traffic of
 * control planes, the API server or a registry. Like Kubernetes' DenyServiceExternalIPs (enabled in embedded gardens; a
 * chart cannot enable it), the policy allows addresses that a Service already has.
 * @param sparedNamespaces CEL list, or a Helm template of one, of namespaces whose Services are exempt
 */
export function seedServices(sparedNamespaces: string): KubeObject[] {
  return refusingPolicy(`seed-services.${GROUP}`, {
    matchConstraints: {
      resourceRules: [
        { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: ['services'] },
      ],
    },
    matchConditions: [{ name: 'namespace-is-not-spared', expression: `!(request.namespace in ${sparedNamespaces})` }],
    validations: [
      {
        expression:
          '!has(object.spec.externalIPs) || object.spec.externalIPs.all(ip, oldObject != null && has(oldObject.spec.externalIPs) && ip in oldObject.spec.externalIPs)',
        messageExpression:
          "'Service ' + object.metadata.name + ' may have no new spec.externalIPs: this cluster hosts control planes, and all its nodes would send their traffic to it. The platform team may spare namespace ' + object.metadata.namespace",
        message: 'a Service may have no new spec.externalIPs in a cluster that hosts control planes',
        reason: 'Forbidden',
      },
    ],
  });
}
