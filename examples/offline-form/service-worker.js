/**
 * Lets the page open without a network: it keeps the page's files, and gives them where the server does not answer. It knows nothing of MQTT.
 *
 * Whatever the server answers is newer than what is kept, so that a new version of the page is seen at once.
 */
const name = 'offline-form'
const files = ['./', './style.css', './form.js']

addEventListener('install', (event) => {
  skipWaiting()
  event.waitUntil(caches.open(name).then((cache) => cache.addAll(files)))
})

addEventListener('activate', (event) => event.waitUntil(clients.claim()))

async function answer(request) {
  try {
    const response = await fetch(request)
    const cache = await caches.open(name)
    if (response.ok) await cache.put(request, response.clone())
    return response
  } catch (error) {
    // The address of the broker in the query makes no other page.
    const kept = await caches.match(request, { ignoreSearch: true })
    if (kept === undefined) throw error
    return kept
  }
}

addEventListener('fetch', (event) => {
  if (event.request.method === 'GET') event.respondWith(answer(event.request))
})
