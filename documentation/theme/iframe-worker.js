/* Browsers start no Worker for a page that is a file. The theme's search runs in one, so a frame that
 * is not shown stands in for it: it loads the same script, and the two pass messages to each other.
 * The theme looks for the name IFrameWorker to find out that it runs in a frame. */
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      this.onmessage = null
      this.waiting = []
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.appendChild(frame)
      this.inside = frame.contentWindow
      window.addEventListener("message", event => {
        if (event.source !== this.inside) return
        const passed = new MessageEvent("message", { data: event.data })
        this.dispatchEvent(passed)
        if (this.onmessage) this.onmessage(passed)
      })
      this.inside.document.open()
      this.inside.document.write(
        "<script>postMessage = (data) => parent.postMessage(data, '*')</scr" + "ipt>" +
        "<script src=\"" + String(url).replace(/"/g, "%22") + "\"></scr" + "ipt>"
      )
      this.inside.document.close()
      frame.onload = () => {
        const waiting = this.waiting
        this.waiting = null
        waiting.forEach(data => this.pass(data))
      }
    }
    pass(data) {
      this.inside.dispatchEvent(new MessageEvent("message", { data }))
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data)
      else this.pass(data)
    }
    terminate() {}
  }
  window.Worker = window.IFrameWorker
}
