/** Starts the page: the broker is `?url=…`, or ws://127.0.0.1:9001. */
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './app.jsx'

const url = new URLSearchParams(location.search).get('url') ?? 'ws://127.0.0.1:9001'

createRoot(document.getElementById('root')).render(
  <StrictMode>
    <App url={url} />
  </StrictMode>,
)
