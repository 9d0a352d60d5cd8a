import type { CloudPool } from '../cloud.ts';

/** Values of AMITypes in EKS' service model (botocore 1.43.11): Amazon Linux 2023, with NVIDIA's drivers where there are GPUs. */
const AMI_TYPES = {
  amd64: { plain: 'AL2023_x86_64_STANDARD', gpu: 'AL2023_x86_64_NVIDIA' },
  arm64: { plain: 'AL2023_ARM_64_STANDARD', gpu: 'AL2023_ARM_64_NVIDIA' },
} as const;

/** Which of EKS' images the pool's nodes start from. */
export const amiTypeOf = (pool: Pick<CloudPool, 'architecture' | 'gpu'>): string =>
  AMI_TYPES[pool.architecture][pool.gpu > 0 ? 'gpu' : 'plain'];
