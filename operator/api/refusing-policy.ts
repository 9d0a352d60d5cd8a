import type { KubeObject } from './meta.ts';

/** A policy with its binding: what it finds fault with is refused, and so is everything while it cannot be asked. */
export const refusing = (name: string, rules: Record<string, unknown>): KubeObject[] => [
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name },
    spec: { failurePolicy: 'Fail', ...rules },
  },
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name },
    spec: { policyName: name, validationActions: ['Deny'] },
  },
];
