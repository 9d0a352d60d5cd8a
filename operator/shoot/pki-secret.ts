import type { KubeObject } from '../api/meta.ts';
import { PKI_SECRET, type PKIData } from './pki.ts';
import { componentSecret } from './pod.ts';
import type { ControlPlane } from './values.ts';

/** The Secret with all keys of the shoot, stored before anything is created from it. */
export const pkiSecret = (values: ControlPlane, pki: PKIData): KubeObject => componentSecret(values, PKI_SECRET, pki);
