"""A virtual Coldcard Mk4 that speaks the vendor's protocol over a Unix datagram socket."""
