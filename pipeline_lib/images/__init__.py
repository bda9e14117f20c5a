"""From image files to feature vectors.

``decoding``
    One image file to 8-bit RGB, or an error that says what is wrong with it.
``transforms``
    One decoded image to the crops that a network sees.
``weights``, ``backbones``, ``networks``
    Pretrained networks, cut after the layer that serves as the image feature.
``windows``
    Five crops of an image as windows of the network's last feature map.
``runtimes``
    The same network in float64, float32 or bfloat16, on a CPU or a CUDA device.
``batches``
    Decoding ahead of the network; finished batches on disk, for resuming.
``extraction``
    All of it over a whole images table.
``encoding``
    All of it for single photos, as a search has them.
"""
