"""What the signer's page and the platform's console share: style, htmx, figures as HTML, the picture."""
