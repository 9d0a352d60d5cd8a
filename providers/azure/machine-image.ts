/** Azure's three ways to name an image. */
export function imageReferenceOf(image: string): Record<string, string> {
  if (/^\/CommunityGalleries\//i.test(image)) return { communityGalleryImageId: image };
  if (image.startsWith('/')) return { id: image };
  const [publisher = '', offer = '', sku = '', version = 'latest'] = image.split(':');
  return { publisher, offer, sku, version };
}
