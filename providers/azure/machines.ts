import type { CloudPool, NetworkOutputs, Owner } from '../cloud.ts';

/** A group of machines that join a cluster which is not Azure's. */
export interface MachinePool extends CloudPool {
  /** Id of an image (`/subscriptions/.../images/x`), of one of a community gallery (`/CommunityGalleries/...`), or `publisher:offer:sku:version`. */
  image: string;
  /** What cloud-init gets, as text; 65535 bytes at most (@pulumi/azure-native). Holds no lasting secret: every pod that reaches the metadata server can read it. */
  userData: string;
  /** Azure makes no machine without a password or a key (`ssh-ed25519 ...`); nobody needs to have the private one. */
  sshPublicKey: string;
}

/** Inputs of the layer `machines`. */
export interface MachinesInputs {
  owner: Owner;
  region: string;
  /** Of the cluster: for pools that name none. */
  zones: string[];
  network: NetworkOutputs;
  pools: MachinePool[];
  /** From where the API server calls kubelets (TCP 10250), CIDR. Empty: machines dial out, nothing is let in. */
  kubeletClients: string[];
}

/** Outputs of the layer `machines`. */
export interface MachinesOutputs {
  securityGroup: string;
  /** Name of the scale set by name of the pool. */
  groups: Record<string, string>;
}

/** Azure has three ways to say which image. */
export function imageReferenceOf(image: string): Record<string, string> {
  if (/^\/CommunityGalleries\//i.test(image)) return { communityGalleryImageId: image };
  if (image.startsWith('/')) return { id: image };
  const [publisher = '', offer = '', sku = '', version = 'latest'] = image.split(':');
  return { publisher, offer, sku, version };
}
