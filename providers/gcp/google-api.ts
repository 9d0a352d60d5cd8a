import { type JsonAnswer, jsonApi, jsonRefusal as refusedBy } from '../json-api.ts';
import { classify } from './errors.ts';

/** Google's endpoints: scheme and host, without a trailing slash. */
export interface Endpoints {
  oauth: string;
  /** Security Token Service: exchanges external tokens. */
  sts: string;
  iamCredentials: string;
  /** Metadata server of a machine at Google. */
  metadata: string;
  resourceManager: string;
  cloudAsset: string;
  compute: string;
  container: string;
  dns: string;
  kms: string;
  iam: string;
  storage: string;
}

/** Hosts as the APIs' discovery documents name them (googleapis/google-api-go-client, <api>/v1/<api>-api.json, rootUrl). */
export const GOOGLE: Endpoints = {
  oauth: 'https://oauth2.googleapis.com',
  sts: 'https://sts.googleapis.com',
  iamCredentials: 'https://iamcredentials.googleapis.com',
  metadata: 'http://metadata.google.internal',
  resourceManager: 'https://cloudresourcemanager.googleapis.com',
  cloudAsset: 'https://cloudasset.googleapis.com',
  compute: 'https://compute.googleapis.com',
  container: 'https://container.googleapis.com',
  dns: 'https://dns.googleapis.com',
  kms: 'https://cloudkms.googleapis.com',
  iam: 'https://iam.googleapis.com',
  storage: 'https://storage.googleapis.com',
};

/** Calls Google APIs. Throws CoppiceErrors by Google's codes. */
export const callGoogle = jsonApi(classify);

/** The error for Google's refusal. */
export const googleRefusal = (what: string, answer: JsonAnswer) => refusedBy(classify, what, answer);
